import { resolve } from 'node:path';
import { isObjectPath, type ObjectStorage } from '../../engine/index.js';
import type { ArchiveInput } from '../definition/definition.js';
import { TableFolder, withoutSlash } from './table-folder.js';
import { DeltaTable } from './delta-table.js';
import { IcebergTable } from './iceberg-table.js';
import type { Table } from './table.js';

/** By archive, because a table is read on from what is known. */
const tables = new WeakMap<ArchiveInput, Table>();

/** The table of an archive. */
export function tableOf(archive: ArchiveInput, objects: ObjectStorage | undefined, filesMax: number): Table {
  const known = tables.get(archive);
  if (known !== undefined) return known;
  const { format, at } = archive.table!;
  const folder = new TableFolder(rootOf(archive), objects);
  const table = new (format === 'delta' ? DeltaTable : IcebergTable)(folder, at, filesMax);
  tables.set(archive, table);
  return table;
}

/** The folder of an archive's table. */
export function rootOf({ folder, globs }: ArchiveInput): string {
  const { glob } = globs[0]!;
  return withoutSlash(isObjectPath(glob) ? glob : resolve(folder, glob));
}
