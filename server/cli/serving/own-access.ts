import { resolve } from 'node:path';
import type { ListenAddress } from '../../../agents/definition/config.js';
import type { CollectLog } from '../../../agents/collect/logs/collect-log.js';
import { Access } from '../../access/access.js';
import type { ListenerGuard } from '../../access/listener-guard.js';
import { isLoopback } from '../../http/listen.js';
import type { Settings } from '../options/settings.js';
import type { OwnCertificate } from './own-certificates.js';
import { messageOf, type RereadCause, type Rereadable } from './rereading.js';

/** Reads the tokens of the data folder. Throws for one that can't be read: it might be one that was revoked. */
export function openAccess({ dataFolder }: Settings, log: CollectLog): Promise<Access> {
  return Access.open(resolve(dataFolder), (message) => log.warn({}, message));
}

/** The tokens of a running server. */
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
      this.#log.info({ cause, tokens: tokens.length }, 'the tokens were read anew');
    } catch (error) {
      this.#log.error({ cause }, `${messageOf(error)}: the tokens stay as they were`);
    }
  }
}

/** Warns of a listener that others than this machine reach, where nothing says who they are, or where what does goes over the net in the clear. */
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
      'everybody who reaches this machine may ask: make a token ("logstrata token new"), or name the proxy that asks who they are in ' +
        'server.trusted_proxies',
    );
  else if (certificate === undefined)
    log.warn(
      { listen: host },
      'tokens and records go over the net as they are: set server.tls, or name the proxy in server.trusted_proxies',
    );
}
