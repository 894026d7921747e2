import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readCases } from './case-file.js';
import { itUnless } from '../needs.js';

/** The specification that the cases follow, if it is available next to the checkout. */
const semantics = join(import.meta.dirname, '../../../shared/semantics.md');

/** The first cells of the rows of each table, without code marks. */
function tableRows(): string[] {
  const rows: string[] = [];
  const lines = readFileSync(semantics, 'utf8').split('\n');
  lines.forEach((line, i) => {
    const isHead = lines[i + 1]?.startsWith('|---') === true;
    if (!line.startsWith('| ') || isHead) return;
    rows.push(line.split('|')[1]!.replaceAll('`', '').trim());
  });
  return rows;
}

const missing = existsSync(semantics) ? null : 'the specification is not beside the checkout';

itUnless(missing, 'each row of each table has a case of its name', () => {
  const names = readCases().map((each) => each.name);
  const rows = tableRows();
  expect(rows.length).toBeGreaterThan(25);
  const bare = rows.filter((row) => !names.some((name) => name.startsWith(`${row}:`)));
  expect(bare).toEqual([]);
});

it('each pagination rule has a case, and no two cases share a name', () => {
  const names = readCases().map((each) => each.name);
  for (let rule = 1; rule <= 6; rule++)
    expect(names.some((name) => name.startsWith(`Rule ${rule}:`))).toBe(true);
  expect(new Set(names).size).toBe(names.length);
});
