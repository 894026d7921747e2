import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { ForeignPlace, ForeignRowGroup } from '../foreign-file.js';
import { FactsCache } from '../facts-cache.js';
import { readFooter, withParquetFooter } from '../parquet/read-parquet-file.js';
import { schemaNodes, type SchemaNode } from './schema-node.js';

/** Schema tree and column chunks of a footer, including the chunks inside nested columns. */
export interface NestedFooter {
  readonly columns: readonly SchemaNode[];
  /** Their `chunks` have one entry per leaf of the schema. */
  readonly rowGroups: readonly ForeignRowGroup[];
}

const footers = new FactsCache((place) =>
  withParquetFooter(place, async (footer, footerAt) => readNestedFooter(footer, footerAt)),
);

/** Returns the footer of a Parquet file, cached per thread. Throws as `readParquetFile` does. */
export async function nestedFooterOf(place: ForeignPlace): Promise<NestedFooter> {
  return await footers.of(place);
}

function readNestedFooter(footer: Uint8Array, footerAt: number): NestedFooter {
  const elements: ThriftFields[] = [];
  const { rowGroups } = readFooter(footer, footerAt, {
    element: (element) => elements.push(element),
    // Present each leaf as a nested column of its own (`flat: null`): of these only the position is read.
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
