import { ObjectFailure } from './object-client.js';

/** The fields of an error of the client library. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Error codes of failed connections. A retry may succeed. */
const passingCodes: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** Error names by which services report temporary failures, sometimes with a status that does not tell. */
const passingNames: ReadonlySet<string> = new Set([
  'TimeoutError',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'SlowDown',
  'InternalError',
  'ServiceUnavailable',
  'ThrottlingException',
]);

/** Advice to the user, by the name that the service or the client gives the error. */
const advice: ReadonlyMap<string, string> = new Map([
  [
    'CredentialsProviderError',
    'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (s3: profile: NAME in config.yaml)',
  ],
  ['InvalidAccessKeyId', 'the service does not know the access key'],
  ['SignatureDoesNotMatch', 'the secret access key does not belong to the access key'],
  ['ExpiredToken', 'the session token has expired'],
  [
    'AccessDenied',
    'the credentials need the permissions s3:ListBucket and s3:GetObject, and for writing s3:PutObject and s3:DeleteObject',
  ],
  ['PermanentRedirect', 'the bucket is in another region (s3: region: NAME in config.yaml)'],
  ['AuthorizationHeaderMalformed', 'the bucket is in another region (s3: region: NAME in config.yaml)'],
  ['ENOTFOUND', 'no such host: check s3: endpoint in config.yaml'],
  ['ECONNREFUSED', 'no server listens there: check s3: endpoint in config.yaml'],
]);

/** Advice by status, for responses without an error name, such as those without a body. */
const adviceOfStatus: ReadonlyMap<number | undefined, string> = new Map([
  [403, 'the credentials are not accepted, or lack the permissions s3:ListBucket and s3:GetObject'],
  [404, 'no such object'],
  [412, 'the object has changed'],
]);

/** Converts an error of the client library to an `ObjectFailure`. */
export function failureOf(error: unknown): ObjectFailure {
  if (error instanceof ObjectFailure) return error;
  if (!(error instanceof Error)) return new ObjectFailure(String(error), undefined, false);
  const { name, message, code, $metadata } = error as ClientError;
  const status = $metadata?.httpStatusCode;
  const key = typeof code === 'string' && status === undefined ? code : name;
  const hint = advice.get(key) ?? adviceOfStatus.get(status);
  // The name in an error without a body is made from its status and tells nothing more.
  const isNamed = !/^(?:\d+|NotFound|Forbidden|Unknown\w*)$/.test(key);
  const said = message === '' || message === key || message === 'UnknownError' ? key : `${key}: ${message}`;
  const parts = [status === undefined ? [] : [`${status}`], isNamed ? [said] : []].flat();
  const text = `${parts.join(' ')}${hint === undefined ? '' : ` (${hint})`}`;
  return new ObjectFailure(text.trim(), status, isPassing(error), { cause: error });
}

function isPassing({ name, code, $metadata }: ClientError): boolean {
  const status = $metadata?.httpStatusCode;
  if (passingNames.has(name)) return true;
  if (status === undefined) return passingCodes.has(code);
  // A success status means that the body could not be read.
  return status >= 500 || status === 429 || status < 300;
}
