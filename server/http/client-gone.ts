import { LogstrataError } from '../../engine/index.js';

/** The error that ends work for a client whose connection has closed. */
export function clientGoneError(): LogstrataError {
  return new LogstrataError('cancelled', 'the client has gone away');
}
