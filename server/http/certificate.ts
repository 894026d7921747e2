import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { fileSystemError, LogstrataError, readBounded, configBytesMax } from '../../engine/index.js';

/** Paths of two PEM files: a server's certificate followed by the intermediate certificates, and its private key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that a server can answer with. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** The names and addresses that the certificate is for, as one text. */
  readonly names: string;
  readonly notBeforeMs: number;
  readonly expiresMs: number;
}

/** Older versions are insecure and deprecated (RFC 8996). */
export const tlsVersionMin = 'TLSv1.2';

/** A certificate that expires sooner should have been renewed by now: those of Let's Encrypt are renewed with 30 of 90 days left. */
const renewalMs = 14 * 86_400_000;

/**
 * Reads a certificate and its key. Throws a `LogstrataError` that names the file and says what is wrong: missing, not permitted, no PEM,
 * a key with a passphrase, a key of another certificate, or one that this machine's OpenSSL refuses.
 *
 * @param waits as for `readBounded`
 */
export function readCertificate(files: CertificateFiles, waits = false): Certificate {
  const cert = readPem(files.cert, 'the certificate', waits);
  const key = readPem(files.key, 'the private key', waits);
  const parsed = parseCertificate(cert, files.cert);
  if (!parsed.checkPrivateKey(parseKey(key, files.key)))
    throw problem(files.key, `the private key ${files.key} does not belong to the certificate ${files.cert}`);
  try {
    createSecureContext({ cert, key, minVersion: tlsVersionMin });
  } catch (cause) {
    throw problem(files.cert, `the certificate ${files.cert} can't be used: ${reasonOf(cause)}`, cause);
  }
  return {
    cert,
    key,
    names: parsed.subjectAltName ?? parsed.subject,
    notBeforeMs: Date.parse(parsed.validFrom),
    expiresMs: Date.parse(parsed.validTo),
  };
}

/** A warning if clients refuse a certificate because of its dates, now or soon; undefined if they do not. */
export function validityWarning(
  { notBeforeMs, expiresMs }: Certificate,
  path: string,
  nowMs: number,
): string | undefined {
  if (nowMs < notBeforeMs)
    return `the certificate ${path} is not valid before ${textOfTime(notBeforeMs)}: clients refuse it until then`;
  if (nowMs >= expiresMs)
    return `the certificate ${path} expired on ${textOfTime(expiresMs)}: clients refuse it`;
  if (expiresMs - nowMs < renewalMs)
    return `the certificate ${path} expires on ${textOfTime(expiresMs)}: renew it, and send SIGHUP`;
  return undefined;
}

function readPem(path: string, what: string, waits: boolean): Buffer {
  let bytes: Buffer;
  try {
    bytes = readBounded(path, configBytesMax, waits);
  } catch (cause) {
    throw fileSystemError(cause, `read ${what}`, path);
  }
  if (bytes.length > configBytesMax)
    throw problem(path, `${path} has more than ${configBytesMax} bytes, too many for a certificate`);
  return bytes;
}

function parseCertificate(cert: Buffer, path: string): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch (cause) {
    throw problem(
      path,
      `${path} contains no certificate: expected PEM ("-----BEGIN CERTIFICATE-----")`,
      cause,
    );
  }
}

function parseKey(key: Buffer, path: string): KeyObject {
  try {
    return createPrivateKey(key);
  } catch (cause) {
    if (key.includes('ENCRYPTED'))
      throw problem(path, `the private key ${path} has a passphrase: remove it with "openssl pkey"`, cause);
    throw problem(
      path,
      `${path} contains no private key: expected PEM ("-----BEGIN PRIVATE KEY-----")`,
      cause,
    );
  }
}

function problem(path: string, message: string, cause?: unknown): LogstrataError {
  return new LogstrataError('invalid', message, { path, cause });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function textOfTime(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
