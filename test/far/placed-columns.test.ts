import { expect, it } from 'vitest';
import { columnValue } from '../../engine/columns/column.js';
import { leasedMemoryBytes } from '../../engine/memory/memory-lease.js';
import { sharedMemory } from '../../engine/memory/shared-memory.js';
import { PlacedColumns } from '../../engine/scan/far/placed-columns.js';
import { ColumnLease } from '../../engine/store/reading/column-lease.js';
import { batchFromRows } from '../model/rows.js';

const fields = [
  { name: 'n', type: 'int' },
  { name: 'text', type: 'string' },
] as const;

it('columns stay in shared memory as long as any query holds them, and are placed there once', () => {
  const rows = Array.from({ length: 300 }, (_, i) => [i % 7 === 0 ? null : BigInt(i), `ünï ${i}`]);
  const { columns } = batchFromRows({ fields }, rows);
  const placed = new PlacedColumns();
  const before = leasedMemoryBytes();
  for (const [field, column] of columns.entries()) {
    const [one, other] = [new ColumnLease(), new ColumnLease()];
    const there = placed.hold(column, one);
    expect(placed.hold(column, other)).toBe(there);
    const values = there.kind === 'bytes' ? there.bytes : (there as { values: BigInt64Array }).values;
    expect(sharedMemory().holds(values)).toBe(true);
    one.release();
    expect(leasedMemoryBytes()).toBeGreaterThan(before);
    expect(rows.map((_, row) => columnValue(there, row))).toEqual(rows.map((row) => row[field]));
    other.release();
    expect(leasedMemoryBytes()).toBe(before);
  }
});
