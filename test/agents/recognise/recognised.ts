import { recognise } from '../../../agents/recognise/recognise.js';
import type { LogSample } from '../../../agents/recognise/log-sample.js';
import type { Trial } from '../../../agents/recognise/trial.js';

/** The time at which the lines of samples were written. */
export const writtenMs = Date.UTC(2026, 10, 20);

export const settings = {
  agentPath: '/agents/log.yaml',
  timezone: 'UTC',
  path: '/var/log/log\\.log',
  comments: ['A log.'],
};

export function sampleOf(text: string | Uint8Array): LogSample {
  const piece = { path: 'log', bytes: Buffer.from(text), modifiedMs: writtenMs };
  return { pieces: [piece], isWhole: true };
}

export function recognised(text: string | Uint8Array): Trial {
  const trial = recognise(sampleOf(text), settings);
  if (trial === undefined) throw new Error('nothing was recognised');
  return trial;
}

/** The fields as `name` or `name:type`, with the format of times. */
export function fieldsOf({ definition }: Trial): string {
  return definition.fields
    .map(({ name, type, timestamp }) => {
      if (type === 'string') return name;
      return timestamp === undefined ? `${name}:${type}` : `${name}:${timestamp.format}`;
    })
    .join(' ');
}

/** The first records without their nulls; times in ISO 8601. */
export function recordsOf({ definition, first }: Trial): Record<string, unknown>[] {
  return first.map((record) => {
    const values = definition.fields.map(({ name, type }, i): [string, unknown] => {
      const value = record[i]!;
      if (value === null) return [name, null];
      if (type === 'time') return [name, new Date(Number(value)).toISOString()];
      return [name, typeof value === 'bigint' ? Number(value) : value];
    });
    return Object.fromEntries(values.filter(([, value]) => value !== null));
  });
}

/** The first record, as `recordsOf` gives it. */
export function firstOf(trial: Trial): Record<string, unknown> {
  return recordsOf(trial)[0]!;
}
