import { fc } from '../../cases.js';

/** A value of a table: null where there is none. */
export type Cell = string | null;

/** Rows under one header. */
export interface Section {
  readonly names: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** All names of columns that random tables have. `n` is in each. */
export const names = ['n', 'text', 'two words', 'a "quoted" one', 'with,comma', 'x;y'];

/** How a value is written: quoted where it must be, or where `marks` says so. */
export type Write = (value: Cell, marks: boolean) => string;

export const csvValue =
  (separator: string): Write =>
  (value, marks) => {
    if (value === null) return '';
    const must = value === '' || /["\r\n]/.test(value) || value.includes(separator);
    return must || marks ? `"${value.replaceAll('"', '""')}"` : value;
  };

/** Random sections: the first header is any choice of names, the later ones are the same names in another order. */
export function sectionsOf(texts: fc.Arbitrary<Cell>): fc.Arbitrary<Section[]> {
  return fc
    .tuple(
      fc.shuffledSubarray(names.slice(1), { minLength: 1 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    )
    .chain(([others, seeds]) => {
      const all = ['n', ...others];
      const sections = seeds.map((seed) => {
        const turned = all.map((_, i) => all[(i + seed) % all.length]!);
        const row = fc.tuple(...turned.map((name) => (name === 'n' ? fc.nat(1000).map(String) : texts)));
        return fc.array(row, { maxLength: 8 }).map((rows) => ({ names: turned, rows }));
      });
      return fc.tuple(...sections);
    });
}

/** What every record of the sections has in the columns `wanted`, in order; null for a column that the header lacks. */
export function recordsIn(sections: readonly Section[], wanted: readonly string[]): Cell[][] {
  return sections.flatMap(({ names, rows }) =>
    rows.map((row) => wanted.map((name) => (names.includes(name) ? row[names.indexOf(name)]! : null))),
  );
}

/** The sections as text. `choices` decide what may be written in two ways: quotation marks, and how lines end. */
export function written(
  sections: readonly Section[],
  separator: string,
  write: Write,
  choices: readonly boolean[],
): string {
  let used = 0;
  const choose = (): boolean => choices[used++ % choices.length]!;
  return sections
    .flatMap(({ names, rows }) => [names, ...rows])
    .map((row) => row.map((value) => write(value, choose())).join(separator) + (choose() ? '\r\n' : '\n'))
    .join('');
}

const marked = '"(?:[^"]|"")*"';
// A carriage return may follow a closing mark.
const value = `(?:${marked}(?:\\r[^",\\n]*)?|[^",\\n]*)`;
const wellFormed = new RegExp(`(?:\\0+(?="))?${value}(?:,${value})*(?:\\n|$)`, 'y');

/** The records of CSV: as many lines as it takes for every mark to be around a value; one line where that is not possible. */
export function recordsOf(text: string): { readonly text: string; readonly end: number }[] {
  const records: { text: string; end: number }[] = [];
  for (let at = 0; at < text.length;) {
    wellFormed.lastIndex = at;
    const feed = text.indexOf('\n', at);
    const line = feed < 0 ? text.slice(at) : text.slice(at, feed + 1);
    const record = wellFormed.exec(text)?.[0] ?? line;
    at += record.length;
    records.push({ text: record, end: at });
  }
  return records;
}

const nextValue = new RegExp(`(?:(${marked})|((?!")[^,]*))(?:,|$)`, 'y');

/** The values of a row; null where a mark is out of place. */
function valuesOf(row: string): Cell[] | null {
  const values: Cell[] = [];
  for (let at = 0; at <= row.length;) {
    nextValue.lastIndex = at;
    const found = nextValue.exec(row);
    if (found === null) return null;
    const [all, quoted, plain] = found;
    values.push(quoted === undefined ? plain || null : quoted.slice(1, -1).replaceAll('""', '"'));
    at += all.length;
    if (!all.endsWith(',') || (quoted === undefined && plain === all && at === row.length)) break;
  }
  return values;
}

/** The records and the rejected rows of CSV with the columns `names`, by these names; the first row must be the header. */
export function rowsIn(text: string, names: readonly string[]): { rows: Cell[][]; rejected: string[] } {
  let header: Cell[] | null = null;
  const rows: Cell[][] = [];
  const rejected: string[] = [];
  for (const record of recordsOf(text)) {
    const row = record.text.replace(/^\0+/, '').replace(/\r?\n$|\r$/, '');
    if (row === '') continue;
    const values = valuesOf(row);
    if (values !== null && [...names].sort().join() === [...values].sort().join()) header = values;
    else if (values === null || values.length === 1 || values.length > names.length) rejected.push(row);
    else rows.push(names.map((name) => values[header!.indexOf(name)] ?? null));
  }
  return { rows, rejected };
}
