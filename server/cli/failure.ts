import { Writable } from 'node:stream';
import { CommanderError } from 'commander';
import type { Logger, LoggerOptions } from 'pino';
import { ConfigError, formatProblem } from '../../agents/definition/config-error.js';
import {
  AssertionError,
  fileSystemError,
  isLogstrataError,
  type LogstrataError,
} from '../../engine/index.js';
import { ProblemError } from '../http/problem.js';
import { OutputClosedError, printable, printableLines, tell } from './terminal.js';

/** Exit codes: success; a failure at run time; wrong usage of the command line. */
export const exitDone = 0;
export const exitFailed = 1;
export const exitUsage = 2;

/** More mistakes would move the first ones out of sight. */
const problemsShownMax = 20;

/** Wrong usage of the command line. `hint` is shown on a second line and says what to type instead. */
export class UsageError extends Error {
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.name = 'UsageError';
    this.hint = hint;
  }
}

/**
 * Prints an error on standard error for the user, and returns the exit code. Unexpected errors are reported as bugs. Stack traces are
 * printed only where `LOGSTRATA_DEBUG=1` is set.
 */
export function reportFailure(error: unknown): number {
  if (error instanceof OutputClosedError) return exitDone;
  // Commander has printed its message already. It uses exit code 1 for wrong usage.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitDone : exitUsage;
  tellStack(error);
  const lines = describeFailure(error);
  if (lines !== undefined) {
    lines.forEach((line, i) => tell(i === 0 ? `logstrata: ${line}` : line));
    const isUsage = error instanceof UsageError || (error instanceof ProblemError && error.status === 400);
    return isUsage ? exitUsage : exitFailed;
  }
  tell(`logstrata: unexpected error: ${error instanceof Error ? error.message : String(error)}`);
  if (!(error instanceof AssertionError)) tell('This is a bug in logstrata.');
  tell('Please report it, with the output of the same command when LOGSTRATA_DEBUG=1 is set.');
  return exitFailed;
}

/** Lines about an error for whoever can act on it; undefined for one that only a bug explains. */
export function describeFailure(error: unknown): readonly string[] | undefined {
  if (error instanceof UsageError)
    return error.hint === undefined ? [error.message] : [error.message, error.hint];
  if (error instanceof ProblemError) return [error.detail];
  if (error instanceof ConfigError) {
    const { problems } = error;
    const more = problems.length - problemsShownMax;
    return [
      `${problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`} in the configuration:`,
      ...problems.slice(0, problemsShownMax).map(formatProblem),
      ...(more > 0 ? [`and ${more} more: "logstrata check" shows all`] : []),
    ];
  }
  if (isLogstrataError(error)) return [messageWithPlace(error.message, error.path, error.offset)];
  if (!isSystemError(error)) return undefined;
  const { path, syscall = 'use' } = error;
  return [path === undefined ? error.message : (fileSystemError(error, syscall, path) as Error).message];
}

/** For `catch` of a promise: an error that a user can act on becomes the result; others are thrown on. */
export function expectedError(error: unknown): LogstrataError {
  if (isLogstrataError(error)) return error;
  throw error;
}

/** An error message, with the file and the offset appended unless the message names the file. */
export function messageWithPlace(
  message: string,
  path: string | undefined,
  offset: number | undefined,
): string {
  if (path === undefined || message.includes(path)) return message;
  return `${message} (${path}${offset === undefined ? '' : `, byte ${offset}`})`;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function tellStack(error: unknown): void {
  if (process.env['LOGSTRATA_DEBUG'] !== '1') return;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
    (cause.stack ?? cause.message).split('\n').forEach(tell);
}

/** Log levels, from the most messages to none. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof logLevels)[number];

/**
 * Opens the program's own log on standard error: coloured lines on a terminal, else one JSON object per line. Control characters are
 * escaped, as messages contain names of files. JSON escapes only some of them, and reading it undoes that.
 */
export async function openLog(level: LogLevel): Promise<Logger> {
  const { pino, destination, stdTimeFunctions } = await import('pino');
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime };
  const out = destination({ dest: 2, sync: true });
  if (!process.stderr.isTTY) return pino(options, { write: (line) => void out.write(printableLines(line)) });
  const { default: pretty } = await import('pino-pretty');
  // The texts of a message are escaped before, so that only the colours' own codes are left.
  const write = (text: Buffer, _encoding: unknown, done: () => void): void => {
    out.write(text.toString().replaceAll(/[^\n\u001b]+/g, printable));
    done();
  };
  const shown = { translateTime: 'HH:MM:ss.l', singleLine: true, destination: new Writable({ write }) };
  const escaped = (part: unknown): unknown => (typeof part === 'string' ? printable(part) : part);
  const hooks: LoggerOptions['hooks'] = {
    logMethod(parts, method) {
      method.apply(this, parts.map(escaped) as typeof parts);
    },
  };
  return pino({ level, base: null, hooks }, pretty(shown));
}
