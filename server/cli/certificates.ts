import type { TlsFiles } from '../../agents/definition/config.js';
import type { CollectLog } from '../../agents/collect/logs/collect-log.js';
import { readCertificate, validityWarning, type Certificate } from '../http/certificate.js';
import type { Settings } from './options.js';
import { fingerprintOfFile, messageOf, type RereadCause, type Rereadable } from './rereading.js';

/** A listener whose certificate can be replaced. */
interface Renewable {
  renew(certificate: Certificate): void;
}

/** A certificate, and the listeners that use it. */
export class OwnCertificate implements Rereadable {
  readonly #files: TlsFiles;
  readonly #log: CollectLog;
  #current: Certificate;
  readonly #listeners: Renewable[] = [];

  /** Reads the certificate. Throws a `LogstrataError` that says what is wrong with it. */
  constructor(files: TlsFiles, log: CollectLog) {
    this.#files = files;
    this.#log = log;
    this.#current = readCertificate(files, true);
    this.#warn();
  }

  /** The certificate as it was read last. */
  get current(): Certificate {
    return this.#current;
  }

  /** Adds a listener, which gets the certificates that are read later. */
  isOf(listener: Renewable): void {
    this.#listeners.push(listener);
  }

  async fingerprint(): Promise<string> {
    const { cert, key } = this.#files;
    return `${fingerprintOfFile(cert)} ${fingerprintOfFile(key)}`;
  }

  /** Reads the certificate again. Open connections keep the old one. Where it can't be read, that is logged and the old one stays. */
  reread(cause: RereadCause): Promise<void> {
    const { cert } = this.#files;
    try {
      this.#current = readCertificate(this.#files);
      for (const listener of this.#listeners) listener.renew(this.#current);
      const { names, expiresMs } = this.#current;
      this.#log.info(
        { cause, cert, names, until: new Date(expiresMs).toISOString() },
        'the certificate was reloaded',
      );
      this.#warn();
    } catch (error) {
      this.#log.error({ cause, cert }, `${messageOf(error)}: the certificate stays unchanged`);
    }
    return Promise.resolve();
  }

  #warn(): void {
    const warning = validityWarning(this.#current, this.#files.cert, Date.now());
    if (warning !== undefined) this.#log.warn({}, warning);
  }
}

/** The certificates of the query listener and the console, which may be the same object; undefined where a listener does not use TLS. */
export interface OwnCertificates {
  readonly query: OwnCertificate | undefined;
  readonly console: OwnCertificate | undefined;
  /** Each certificate once. It passes itself on to all its listeners. */
  readonly all: readonly OwnCertificate[];
}

/** Reads the certificates of the configuration. Throws a `LogstrataError` that says what is wrong with one. */
export function readCertificates({ config: { server } }: Settings, log: CollectLog): OwnCertificates {
  const query = server.tls === null ? undefined : new OwnCertificate(server.tls, log);
  const console = server.consoleTls === null ? query : new OwnCertificate(server.consoleTls, log);
  return { query, console, all: [...new Set([query, console])].filter((each) => each !== undefined) };
}
