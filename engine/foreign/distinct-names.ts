import type { ForeignColumn } from './foreign-file.js';

/** Gives each column a name of its own: where several have the same, the second becomes `name_2`, unless another column is called so. */
export function withDistinctNames(columns: readonly ForeignColumn[]): ForeignColumn[] {
  const names = new Set(columns.map(({ name }) => name));
  const seen = new Map<string, number>();
  return columns.map((column) => {
    const before = seen.get(column.name);
    seen.set(column.name, before ?? 1);
    if (before === undefined) return column;
    let number = before + 1;
    while (names.has(`${column.name}_${number}`)) number++;
    seen.set(column.name, number);
    names.add(`${column.name}_${number}`);
    return { ...column, name: `${column.name}_${number}` };
  });
}
