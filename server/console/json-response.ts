import type { ResponseHead, TransportResponse } from '../http/transport.js';
import { noSniffHeaders } from '../route/http-answer.js';

const head: ResponseHead = {
  status: 200,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...noSniffHeaders },
};

/** Answers 200 with a value as JSON. */
export function sendJson(response: TransportResponse, value: unknown): Promise<void> {
  return response.send(head, Buffer.from(`${JSON.stringify(value)}\n`));
}
