import type { ForeignColumn, ForeignFile } from './foreign-file.js';
import { fieldOf } from './stored-type.js';

/** A column, and its number in the file; of a part of a structure, the number of the column that contains it. */
export interface NumberedColumn {
  readonly columnIndex: number;
  readonly column: ForeignColumn;
}

/**
 * Returns the column of a name. Where there is none, `t.time` is the field `time` of the structure `t`: a part of a column, which
 * is read value by value. Null where there is no such part either.
 */
export function innerColumn({ columns }: ForeignFile, name: string): NumberedColumn | null {
  const own = columns.findIndex((column) => column.name === name);
  if (own >= 0) return { columnIndex: own, column: columns[own]! };
  for (const [columnIndex, outer] of columns.entries()) {
    const inner = { path: [], firstLeaf: outer.node?.firstLeaf ?? 0 };
    const column = partNamed({ ...outer, inner }, name, outer.name);
    if (column !== null) return { columnIndex, column: { ...column, name } };
  }
  return null;
}

/** The part of a structure that `name` names, where `of` names the structure itself. */
function partNamed(outer: ForeignColumn, name: string, of: string): ForeignColumn | null {
  if (name === of) return outer;
  if (!name.startsWith(`${of}.`)) return null;
  for (const [i, part] of partsOf(outer).entries()) {
    const { path, firstLeaf } = outer.inner!;
    const inner = { path: [...path, i], firstLeaf };
    const found = partNamed({ ...part, inner }, name, `${of}.${part.name}`);
    if (found !== null) return found;
  }
  return null;
}

/** The fields of a structure; none of another column. */
function partsOf({ node, parts = [], reason }: ForeignColumn): readonly ForeignColumn[] {
  if (node?.kind !== 'struct') return parts;
  return node.fields.map(({ name, node: own }): ForeignColumn => {
    const common = { name, reason, way: 'complete', nullable: true, node: own } as const;
    if (own.kind !== 'leaf') return { ...common, type: 'string', stored: own.kind, values: { kind: 'json' } };
    const { stored } = own.type;
    const isUnsigned64 = stored.kind === 'int' && stored.bits === 64 && !stored.isSigned;
    const field = isUnsigned64 ? ({ type: 'string', values: { kind: 'text' } } as const) : fieldOf(stored);
    return { ...common, ...field, stored: stored.kind };
  });
}
