import { isLogstrataError, LogstrataError } from '../errors.js';

/** Whether what was read is of a format that only a newer program knows: it is not damaged. */
export function isUnsupported(error: unknown): error is LogstrataError & { code: 'unsupported' } {
  return isLogstrataError(error) && error.code === 'unsupported';
}

/** Says so of `what`, as people are told of it, which is the file at `path`. */
export function writtenByNewer(what: string, path: string, { message }: LogstrataError): LogstrataError {
  return new LogstrataError('unsupported', `${what} was written by a newer logstrata: ${message}`, { path });
}
