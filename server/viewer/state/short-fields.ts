import { severityFieldOf, textFieldOf, type Field } from '../query/field.js';
import type { LogRecord } from '../records/record.js';

/** Longer values are read, not counted. */
const meanCharsMax = 48;
/** Among a hundred records, a field with more values than this has one for nearly each. */
const differentMax = 0.4;
/** Counts that are asked for without anybody having asked. */
const fieldsMax = 8;

/** Fields whose values are short and come again and again among some records: those worth counting without being asked. */
export function sampledShort(fields: readonly Field[], sample: readonly LogRecord[]): ReadonlySet<string> {
  if (sample.length === 0) return new Set();
  const severity = severityFieldOf(fields);
  const text = textFieldOf(fields);
  const short = fields.filter(({ name, type }) => {
    if (name === severity || type === 'bool') return true;
    if (name === text || (type !== 'string' && type !== 'int')) return false;
    const values = sample.map(({ values: all }) => all.get(name)).filter((value) => value !== null);
    const texts = values.map(String);
    const chars = texts.reduce((sum, value) => sum + value.length, 0);
    const isFew = new Set(texts).size <= Math.max(3, texts.length * differentMax);
    return texts.length > 0 && isFew && chars / texts.length <= meanCharsMax;
  });
  return new Set(short.slice(0, fieldsMax).map(({ name }) => name));
}
