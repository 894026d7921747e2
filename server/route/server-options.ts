import type { ServerSettings } from '../../agents/definition/config.js';
import type { ReadableStore } from '../../engine/index.js';
import type { SlowQuery } from './query-tally.js';
import type { ListenerGuard } from '../http/access.js';
import type { Certificate } from '../http/certificate.js';
import type { TransportName } from '../http/transport.js';

/** `auto` is `uws` if that is installed and loads, otherwise `node`. */
export type TransportChoice = 'auto' | TransportName;

/** The settings of `config.yaml`, and what else a server needs. */
export interface ServerOptions extends ServerSettings {
  readonly transport: TransportChoice;
  /** With a certificate the server answers over TLS. */
  readonly certificate?: Certificate;
  /** Identifies callers by their tokens. Without a guard everybody may ask. */
  readonly guard?: ListenerGuard;
  /** The store of an agent, or undefined when there is no such agent (404). */
  readonly lookup: (agent: string) => ReadableStore | undefined;
  /** See `AgentsByName`. */
  readonly leftOut?: ReadonlyMap<string, string> | undefined;
  /** The clock for relative times, ms since the epoch. */
  readonly now: () => number;
  /** Called with each failure of the server itself. */
  readonly log: (message: string) => void;
  /** Called with each query that took `slowQueryMs` or longer. */
  readonly onSlow?: ((query: SlowQuery) => void) | undefined;
}
