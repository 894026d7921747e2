import { resolve } from 'node:path';
import type { ListenAddress } from '../../../agents/definition/config.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { Access } from '../../access/access.js';
import type { ListenerGuard } from '../../access/listener-guard.js';
import { isLoopback } from '../../http/listen.js';
import type { Settings } from '../options/settings.js';
import type { OwnCertificate } from './own-certificates.js';
import { messageOf, type RereadCause, type Rereadable } from './rereading.js';

/** Reads the tokens of the data folder. Throws where a token can't be read, as it might be a revoked one. */
export function openAccess({ dataFolder }: Settings, log: CollectLog): Promise<Access> {
  return Access.open(resolve(dataFolder), (message) => log.warn({}, message));
}

/** Reloads the tokens of a running server when they change. */
export class ChangedTokens implements Rereadable {
  readonly #access: Access;
  readonly #log: CollectLog;

  constructor(access: Access, log: CollectLog) {
    this.#access = access;
    this.#log = log;
  }

  fingerprint(): Promise<string> {
    return this.#access.fingerprint();
  }

  async reread(cause: RereadCause): Promise<void> {
    try {
      const tokens = await this.#access.reload();
      this.#log.info({ cause, tokens: tokens.length }, 'the tokens were reloaded');
    } catch (error) {
      this.#log.error({ cause }, `${messageOf(error)}: the tokens stay unchanged`);
    }
  }
}

/**
 * Warns where other machines can reach a listener and no token is needed, or where tokens and records are sent unencrypted. With trusted
 * proxies configured there is no warning: they are expected to provide both.
 */
export function warnOfOpenDoor(
  { host }: ListenAddress,
  guard: ListenerGuard,
  certificate: OwnCertificate | undefined,
  { config: { server } }: Settings,
  log: CollectLog,
): void {
  if (isLoopback(host) || server.trustedProxies.length > 0) return;
  if (!guard.isClosed)
    log.warn(
      { listen: host },
      'everybody who reaches this machine can query it: make a token ("logstrata token new"), or name the proxy that authenticates users in ' +
        'server.trusted_proxies',
    );
  else if (certificate === undefined)
    log.warn(
      { listen: host },
      'tokens and records cross the network unencrypted: set server.tls, or name the proxy in server.trusted_proxies',
    );
}
