import type { ServerSettings } from '../../agents/definition/config.js';
import type { ReadableStore } from '../../engine/index.js';
import type { SlowQuery } from './slow-queries.js';
import type { ListenerGuard } from '../access/listener-guard.js';
import type { Certificate } from '../http/certificate.js';
import type { TransportName } from '../http/transport.js';

/** `auto`: `uws` where it is installed and loads, else `node`. */
export type TransportChoice = 'auto' | TransportName;

/** What a server works with, beside what `config.yaml` says. */
export interface ServerOptions extends ServerSettings {
  readonly transport: TransportChoice;
  /** Has it answer over TLS. */
  readonly certificate?: Certificate;
  /** Tells who asks; without one everybody may. */
  readonly guard?: ListenerGuard;
  /** The store of an agent, or undefined when there is no such agent (404). */
  readonly lookup: (agent: string) => ReadableStore | undefined;
  /** The clock for relative times, ms since the epoch. */
  readonly now: () => number;
  /** For failures on our side, one sentence each. */
  readonly log: (message: string) => void;
  /** Told each query that took longer than `slowQueryMs`. */
  readonly onSlow?: ((query: SlowQuery) => void) | undefined;
}
