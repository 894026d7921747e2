import type { ThriftFields } from '../../parquet/thrift-reader.js';
import type { ForeignPlace, ForeignRowGroup } from '../foreign-file.js';
import { KeptFacts } from '../kept-facts.js';
import { readFooter, withParquetFooter } from '../parquet/read-parquet-file.js';
import { schemaNodes, type SchemaNode } from './schema-node.js';

/** What a footer says of column chunks, those inside of nested columns too. */
export interface NestedFooter {
  readonly columns: readonly SchemaNode[];
  /** Their `chunks` are one for each leaf of the schema. */
  readonly rowGroups: readonly ForeignRowGroup[];
}

const footers = new KeptFacts((place) => withParquetFooter(place, readNestedFooter));

/** The footer of a Parquet file, which this thread reads once. Throws as `readParquetFile` does. */
export async function nestedFooterOf(place: ForeignPlace): Promise<NestedFooter> {
  return await footers.of(place);
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
