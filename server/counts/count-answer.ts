import type { CountedValue, Counts } from '../../engine/index.js';
import type { CountRequest } from './count-request.js';

/**
 * A count as one line of JSON: `{"agent":…,"count":…,"time":{…},"values":{…}}`. `time` and `values` are left out where they were not asked
 * for. Integers are written with all digits.
 */
export function countJson(agent: string, { time, value }: CountRequest, counts: Counts): string {
  const members = [`"agent":${JSON.stringify(agent)}`, `"count":${counts.count}`];
  if (time !== undefined && counts.time !== undefined) {
    const { field, step, zone } = time;
    const head = JSON.stringify({ field: field.name, step, zone, nulls: counts.time.nulls }).slice(0, -1);
    const buckets = counts.time.buckets.map(({ from, until, count, values }) => {
      const cells = values === undefined ? '' : `,"values":[${values.join(',')}]`;
      return `{"from":${digits(from)},"until":${digits(until)},"count":${count}${cells}}`;
    });
    members.push(`"time":${head},"buckets":[${buckets.join(',')}]}`);
  }
  if (value !== undefined && counts.values !== undefined) {
    const { top, other, nulls, distinct } = counts.values;
    const head = JSON.stringify({ field: value.field.name }).slice(0, -1);
    const rows = top.map((one) => `{"value":${jsonValue(one.value)},"count":${one.count}}`);
    members.push(
      `"values":${head},"top":[${rows.join(',')}],"other":${other},"nulls":${nulls},"distinct":${distinct}}`,
    );
  }
  return `{${members.join(',')}}\n`;
}

/**
 * A count as CSV (RFC 4180) with a header. Counted by time, it has one line per bucket, with a column for each value that is counted as
 * well; counted by values alone, one line per value. Records without a time or value are a last line that begins with empty cells, if there
 * are any.
 */
export function countCsv({ time, value }: CountRequest, counts: Counts): string {
  if (time !== undefined && counts.time !== undefined) {
    const { buckets, nulls } = counts.time;
    const top = counts.values?.top ?? [];
    const header = ['from', 'until', 'count', ...top.map((one) => csvText(valueText(one.value)))];
    const rows = buckets.map(({ from, until, count, values = [] }) => [
      digits(from),
      digits(until),
      String(count),
      ...values.map(String),
    ]);
    const without = nulls === 0 ? [] : [['', '', String(nulls), ...top.map(() => '')]];
    return csvLines([header, ...rows, ...without]);
  }
  if (value !== undefined && counts.values !== undefined) {
    const { top, nulls } = counts.values;
    const rows = top.map((one) => [csvText(valueText(one.value)), String(one.count)]);
    const without = nulls === 0 ? [] : [['', String(nulls)]];
    return csvLines([[value.field.name, 'count'], ...rows, ...without]);
  }
  return csvLines([['count'], [String(counts.count)]]);
}

/** A value as text, without quotes. */
export function valueText(value: CountedValue): string {
  return String(value);
}

function jsonValue(value: CountedValue): string {
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value);
}

/** A whole number with all digits: `String` would write a large one with an exponent. */
function digits(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
}

/** A CSV cell. The empty text is quoted, which distinguishes it from a missing value. */
function csvText(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvLines(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.join(',')}\r\n`).join('');
}
