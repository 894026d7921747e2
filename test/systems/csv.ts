/** The rows of a CSV file (RFC 4180) with a header line, by its names. Strict: anything outside of the format throws. */
export function readCsv(text: string): Record<string, string>[] {
  const [head, ...rows] = readRows(text);
  if (head === undefined) throw new Error('no head line');
  return rows.map((row, i) => {
    if (row.length !== head.length)
      throw new Error(`row ${i + 1} has ${row.length} fields, not ${head.length}`);
    return Object.fromEntries(head.map((name, k) => [name, row[k]!]));
  });
}

function readRows(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A quoted field with doubled quotes, or one without quotes and commas; then a comma, a line end or the end of the text.
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const match = field.exec(text);
    if (match === null)
      throw new Error(`row ${rows.length}: no field at ${JSON.stringify(text.slice(at, at + 40))}`);
    row.push(match[1]?.replaceAll('""', '"') ?? match[2]!);
    if (match[3] === ',') continue;
    rows.push(row);
    row = [];
  }
  return rows;
}
