import type * as S3 from '@aws-sdk/client-s3';
import {
  ObjectFailure,
  type ListedObject,
  type ObjectClient,
  type ObjectPage,
  type ObjectStamp,
  type PartOf,
  type ObjectPlace,
} from './object-client.js';
import { LogstrataError } from '../core/errors.js';
import { connectMsMax, objectRequestMsMax, serverRequestsMax } from '../core/limits.js';
import { hasSystemCode } from '../store/disk/directory.js';

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
function failureOf(error: unknown): ObjectFailure {
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

/** How to reach an S3 service. For settings that are undefined, the AWS client uses the environment or the profile, as in other programs. */
export interface S3Settings {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly profile?: string | undefined;
  /** Whether the bucket is in the path of the URL instead of the host name. By default true if there is an endpoint. */
  readonly pathStyle?: boolean | undefined;
}

type Sdk = typeof S3;

/** The region to sign requests with for a service other than Amazon's, which usually has none. */
const regionOfEndpoint = 'us-east-1';

/**
 * Opens a client for a service that speaks S3. It uses Amazon's client library, which is loaded here. Throws `unsupported` if the library
 * is not installed.
 */
export async function openS3Client(settings: S3Settings): Promise<ObjectClient> {
  let sdk: Sdk;
  try {
    sdk = await import('@aws-sdk/client-s3');
  } catch (error) {
    if (!hasSystemCode(error, 'ERR_MODULE_NOT_FOUND')) throw error;
    const message =
      'reading objects (s3://…) needs the package @aws-sdk/client-s3, which is not installed: npm install @aws-sdk/client-s3';
    throw new LogstrataError('unsupported', message, { cause: error });
  }
  const { endpoint, profile, pathStyle = endpoint !== undefined } = settings;
  const region = settings.region ?? (endpoint === undefined ? undefined : regionOfEndpoint);
  const client = new sdk.S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    forcePathStyle: pathStyle,
    // The library must not retry: `request` decides that, because a response body that breaks off has to be retried as well.
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    // There is no checksum of a range, and some services cannot say so.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectMsMax,
      requestTimeout: objectRequestMsMax,
      httpAgent: { keepAlive: true, maxSockets: serverRequestsMax },
      httpsAgent: { keepAlive: true, maxSockets: serverRequestsMax },
    },
  });
  return new S3ObjectClient(sdk, client);
}

class S3ObjectClient implements ObjectClient {
  constructor(
    private readonly sdk: Sdk,
    private readonly client: S3.S3Client,
  ) {}

  async list(
    bucket: string,
    prefix: string,
    from: string | undefined,
    signal: AbortSignal,
  ): Promise<ObjectPage> {
    const command = new this.sdk.ListObjectsV2Command({
      Bucket: bucket,
      Prefix: prefix,
      // Keys may have characters that XML cannot represent.
      EncodingType: 'url',
      ...(from === undefined ? {} : { ContinuationToken: from }),
    });
    const page = await asked(() => this.client.send(command, { abortSignal: signal }));
    const isEncoded = page.EncodingType === 'url';
    const objects = (page.Contents ?? []).flatMap((object): ListedObject[] => {
      const { Key: key, Size: bytes, LastModified: modified, ETag: etag } = object;
      if (key === undefined || bytes === undefined || modified === undefined || etag === undefined) return [];
      return [{ key: isEncoded ? decoded(key) : key, ...stampOf(bytes, modified, etag) }];
    });
    return { objects, next: page.IsTruncated === true ? page.NextContinuationToken : undefined };
  }

  async stamp({ bucket, key }: ObjectPlace, signal: AbortSignal): Promise<ObjectStamp> {
    const command = new this.sdk.HeadObjectCommand({ Bucket: bucket, Key: key });
    const head = await asked(() => this.client.send(command, { abortSignal: signal }));
    const { ContentLength: bytes, LastModified: modified, ETag: etag } = head;
    if (bytes === undefined || modified === undefined || etag === undefined)
      throw new ObjectFailure('the answer lacks the length, the time or the ETag of the object', 200, false);
    return stampOf(bytes, modified, etag);
  }

  async read(
    { bucket, key }: ObjectPlace,
    etag: string,
    from: number,
    to: number,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const command = new this.sdk.GetObjectCommand({
      Bucket: bucket,
      Key: key,
      Range: `bytes=${from}-${to - 1}`,
      IfMatch: `"${etag}"`,
    });
    const answer = await asked(() => this.client.send(command, { abortSignal: signal }));
    const found = answer.ETag === undefined ? etag : withoutQuotes(answer.ETag);
    // Some services ignore If-Match.
    if (found !== etag) {
      (answer.Body as NodeJS.ReadableStream & { destroy(): void }).destroy();
      throw new ObjectFailure('the object has changed', 412, false);
    }
    return await bodyOf(answer, to - from, signal);
  }

  async put(
    { bucket, key }: ObjectPlace,
    bytes: Uint8Array,
    onlyNew: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const command = new this.sdk.PutObjectCommand({
      Bucket: bucket,
      Key: key,
      Body: bytes,
      ...(onlyNew ? { IfNoneMatch: '*' } : {}),
    });
    const { ETag } = await asked(() => this.client.send(command, { abortSignal: signal }));
    return given(ETag, 'the ETag of the object');
  }

  async beginParts({ bucket, key }: ObjectPlace, signal: AbortSignal): Promise<string> {
    const command = new this.sdk.CreateMultipartUploadCommand({ Bucket: bucket, Key: key });
    const { UploadId } = await asked(() => this.client.send(command, { abortSignal: signal }));
    return given(UploadId, 'the name of the upload');
  }

  async putPart(
    { bucket, key }: ObjectPlace,
    { upload, number }: PartOf,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<string> {
    const part = { Bucket: bucket, Key: key, UploadId: upload, PartNumber: number, Body: bytes };
    const command = new this.sdk.UploadPartCommand(part);
    const { ETag } = await asked(() => this.client.send(command, { abortSignal: signal }));
    return given(ETag, 'the ETag of the part');
  }

  async endParts(
    { bucket, key }: ObjectPlace,
    upload: string,
    parts: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const command = new this.sdk.CompleteMultipartUploadCommand({
      Bucket: bucket,
      Key: key,
      UploadId: upload,
      MultipartUpload: { Parts: parts.map((ETag, i) => ({ ETag: `"${ETag}"`, PartNumber: i + 1 })) },
    });
    const { ETag } = await asked(() => this.client.send(command, { abortSignal: signal }));
    return given(ETag, 'the ETag of the object');
  }

  async dropParts({ bucket, key }: ObjectPlace, upload: string, signal: AbortSignal): Promise<void> {
    const command = new this.sdk.AbortMultipartUploadCommand({ Bucket: bucket, Key: key, UploadId: upload });
    await asked(() => this.client.send(command, { abortSignal: signal }));
  }

  async remove({ bucket, key }: ObjectPlace, signal: AbortSignal): Promise<void> {
    const command = new this.sdk.DeleteObjectCommand({ Bucket: bucket, Key: key });
    await asked(() => this.client.send(command, { abortSignal: signal }));
  }

  close(): void {
    this.client.destroy();
  }
}

/** Reads the response body, which must have `length` bytes. It is destroyed in any case, because an unread rest would keep its connection busy. */
async function bodyOf(
  { Body, $metadata }: S3.GetObjectCommandOutput,
  length: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const body = Body as NodeJS.ReadableStream & { destroy(reason?: Error): void };
  const stop = (): void => body.destroy(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  const bytes = new Uint8Array(length);
  let at = 0;
  try {
    await asked(async () => {
      for await (const piece of body as AsyncIterable<Uint8Array>) {
        if (piece.length > length - at) throw tooMany(length, $metadata.httpStatusCode);
        bytes.set(piece, at);
        at += piece.length;
      }
    });
  } finally {
    signal.removeEventListener('abort', stop);
    body.destroy();
  }
  if (at < length)
    throw new ObjectFailure(`the answer ends after ${at} of ${length} bytes`, $metadata.httpStatusCode, true);
  return bytes;
}

function tooMany(length: number, status: number | undefined): ObjectFailure {
  return new ObjectFailure(`the answer has more than the ${length} requested bytes`, status, false);
}

/** Calls `ask` and converts its errors to `ObjectFailure`. */
async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw failureOf(error);
  }
}

/** A value that the response must have, without quotes. */
function given(text: string | undefined, what: string): string {
  if (text === undefined) throw new ObjectFailure(`the answer lacks ${what}`, 200, false);
  return withoutQuotes(text);
}

function stampOf(bytes: number, modified: Date, etag: string): ObjectStamp {
  return { bytes, mtimeMs: Math.floor(modified.getTime() / 1000) * 1000, etag: withoutQuotes(etag) };
}

function withoutQuotes(etag: string): string {
  return etag.replace(/^(?:W\/)?"|"$/g, '');
}

/** Decodes a URL-encoded key. A malformed one is returned unchanged. */
function decoded(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    return key;
  }
}
