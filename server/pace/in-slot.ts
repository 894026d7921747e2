import { LogstrataError } from '../../engine/index.js';
import { clientGoneError } from '../http/client-gone.js';
import type { TransportResponse } from '../http/transport.js';
import type { Admission } from './admission.js';

/** For whom work is done, and how long it may take. */
export interface SlotWish {
  readonly client: string;
  readonly response: TransportResponse;
  readonly timeoutMs: number;
  /** What is said where it takes longer. */
  readonly late: string;
}

/** Does work in a slot of a client. The signal of the work is aborted when the client has gone, and when it takes too long. */
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
