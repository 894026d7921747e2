import { LogstrataError } from '../../engine/index.js';

/** Why work for a client ends whose connection is closed. */
export function clientGoneError(): LogstrataError {
  return new LogstrataError('cancelled', 'the client has gone away');
}
