import { LogstrataError } from '../../engine/index.js';
import { clientGoneError } from '../http/client-gone.js';
import type { TransportResponse } from '../http/transport.js';
import type { Admission } from './admission.js';

/** The client that work is done for, and how long the work may take. */
export interface SlotWish {
  readonly client: string;
  readonly response: TransportResponse;
  readonly timeoutMs: number;
  /** Message of the error if the work takes longer. */
  readonly late: string;
}

/**
 * Does work that is no streamed answer in a slot of a client, for as long as it takes. The signal is aborted when the client has gone, and
 * after `timeoutMs`, which waiting for the slot counts toward.
 */
export async function inSlot<T>(
  admission: Admission,
  { client, response, timeoutMs, late }: SlotWish,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const slot = admission.begin(client);
  const abort = new AbortController();
  response.whenGone(() => abort.abort(clientGoneError()));
  const timer = setTimeout(() => abort.abort(new LogstrataError('timeout', late)), timeoutMs);
  try {
    await slot.enterFirst();
    return await work(abort.signal);
  } finally {
    clearTimeout(timer);
    slot.end();
  }
}
