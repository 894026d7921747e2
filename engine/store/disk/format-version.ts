import { isLogstrataError, LogstrataError } from '../../terms/errors.js';

/** Whether what was read is of a format that only another version of the program knows: it is not damaged. */
export function isUnsupported(error: unknown): error is LogstrataError & { code: 'unsupported' } {
  return isLogstrataError(error) && error.code === 'unsupported';
}

/**
 * The error for a file of another format than the one that this program reads, without its name, which `writtenByAnother` adds.
 *
 * @param format what counts the versions, as people are told of it: `segment format`
 */
export function otherFormat(format: string, found: number, known: number): LogstrataError {
  const has = `it has ${format} ${found}, known is ${known}`;
  return new LogstrataError(
    'unsupported',
    found > known
      ? `was written by a newer logstrata: ${has}`
      : `was written by a logstrata from before the first release: ${has}. ` +
          'Export the records with the program that wrote them, and load them into a new data folder',
  );
}

/** `error` of `otherFormat`, said of `what`, as people are told of it, which is the file at `path`. */
export function writtenByAnother(what: string, path: string, error: LogstrataError): LogstrataError {
  return new LogstrataError('unsupported', `${what} ${error.message}`, { path });
}
