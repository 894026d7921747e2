import { severityFieldOf, textFieldOf, type Field } from '../query/field.js';
import type { LogRecord } from '../records/record.js';

/** Fields with longer values on average are not counted: such values are read one by one. */
const meanCharsMax = 48;
/** Fields with a larger share of distinct values in the sample are not counted: nearly every record has a value of its own. */
const differentMax = 0.4;
/** Maximum number of fields that are counted without the user asking for it. */
const fieldsMax = 8;

/** The fields that are worth counting by default: among the sampled records their values are short and repeat. */
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
