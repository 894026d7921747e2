import { promises as fs } from 'node:fs';
import { fileSystemError } from '../../store/disk/file-system-error.js';
import { foreignFootersMax } from '../../terms/limits.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { ForeignRowGroup } from '../foreign-file.js';
import { readFooter, withParquetFooter } from '../parquet/read-parquet-file.js';
import { schemaNodes, type SchemaNode } from './schema-node.js';

/** What a footer says of column chunks, those inside of nested columns too. */
export interface NestedFooter {
  readonly columns: readonly SchemaNode[];
  /** Their `chunks` are one for each leaf of the schema. */
  readonly rowGroups: readonly ForeignRowGroup[];
}

/** Footers that were read last, by path, size and time of the last change. */
const kept = new Map<string, NestedFooter>();

/** The footer of a Parquet file, which this thread reads once. Throws as `readParquetFile` does. */
export async function nestedFooterOf(path: string): Promise<NestedFooter> {
  let key: string;
  try {
    const { size, mtimeNs } = await fs.stat(path, { bigint: true });
    key = `${size} ${mtimeNs} ${path}`;
  } catch (error) {
    throw fileSystemError(error, 'read', path);
  }
  const footer = kept.get(key) ?? (await withParquetFooter(path, readNestedFooter));
  kept.delete(key);
  kept.set(key, footer);
  for (const oldest of kept.keys()) if (kept.size > foreignFootersMax) kept.delete(oldest);
  return footer;
}

function readNestedFooter(footer: Uint8Array, footerAt: number): NestedFooter {
  const elements: ThriftFields[] = [];
  const { rowGroups } = readFooter(footer, footerAt, {
    element: (element) => elements.push(element),
    // Described as if each were a nested column by itself: of such a one, only its place is read.
    columns: ({ leaves }) =>
      Array.from({ length: leaves }, (_, leaf) => ({
        name: `leaf ${leaf}`,
        isNullable: true,
        flat: null,
        stored: '',
        firstLeaf: leaf,
        leaves: 1,
      })),
  });
  return { columns: schemaNodes(elements), rowGroups: rowGroups.rowGroups };
}
