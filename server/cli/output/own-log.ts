import { InvalidArgumentError, Option } from 'commander';
import type { Logger } from 'pino';

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

/** Opens the program's own log on standard error: coloured lines on a terminal, else one JSON object per line. */
export async function openLog(level: LogLevel): Promise<Logger> {
  const { pino, destination, stdTimeFunctions } = await import('pino');
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime };
  if (!process.stderr.isTTY) return pino(options, destination({ dest: 2, sync: true }));
  const { default: pretty } = await import('pino-pretty');
  const shown = { destination: 2, sync: true, translateTime: 'HH:MM:ss.l', singleLine: true } as const;
  return pino({ level, base: null }, pretty(shown));
}
