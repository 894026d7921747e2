import { isLogstrataError, LogstrataError } from '../../terms/errors.js';

/** Whether an error says that a file has a format of another program version. Such a file is not damaged. */
export function isUnsupported(error: unknown): error is LogstrataError & { code: 'unsupported' } {
  return isLogstrataError(error) && error.code === 'unsupported';
}

/**
 * The error for a file whose format version this program does not read. `writtenByAnother` adds the file's name.
 *
 * @param format what the version counts, as shown to people: `segment format`
 */
export function otherFormat(format: string, found: number, known: number): LogstrataError {
  const has = `it has ${format} ${found}, but this version knows ${known}`;
  return new LogstrataError(
    'unsupported',
    found > known
      ? `was written by a newer version of logstrata: ${has}`
      : `was written by a version from before the first release: ${has}. ` +
          'Export the records with the program that wrote them, and load them into a new data folder',
  );
}

/** The error `otherFormat`, completed with `what` (the file as shown to people) and `path`. */
export function writtenByAnother(what: string, path: string, error: LogstrataError): LogstrataError {
  return new LogstrataError('unsupported', `${what} ${error.message}`, { path });
}
