import { Writable } from 'node:stream';
import { InvalidArgumentError, Option } from 'commander';
import type { Logger, LoggerOptions } from 'pino';
import { printable, printableLines } from './text-width.js';

/** Log levels, from the most messages to none. */
const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof logLevels)[number];

/** The option `--log-level` of the commands that run until they are stopped. */
export function logLevelOption(): Option {
  return new Option('--log-level <level>', 'least important event to log')
    .choices(logLevels)
    .default('info')
    .argParser((text) => {
      const level = logLevels.find((each) => each === text.toLowerCase());
      if (level !== undefined) return level;
      throw new InvalidArgumentError(`It is one of ${logLevels.join(', ')}.`);
    });
}

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
