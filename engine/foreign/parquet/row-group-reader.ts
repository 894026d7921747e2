import { codecNumber, encoding } from '../../parquet/format.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import { foreignPartsMax } from '../../terms/limits.js';
import type { ForeignChunk, ForeignRowGroup } from '../foreign-file.js';
import { offsetIndexBytesMax } from './offset-index.js';
import { chunkFacts, nothingKnown } from './chunk-bounds.js';
import type { SchemaColumn } from './schema-columns.js';

/** Names of the known codecs that our own kernels do not decompress. */
const codecsWithoutKernel = new Map<number, string>([
  [codecNumber.lzo, 'LZO'],
  [codecNumber.brotli, 'Brotli'],
]);

/** Pages begin after the magic number at the beginning of the file. */
const pagesBegin = 4;

/** Takes the `RowGroup`s of parquet.thrift one by one. */
export class RowGroupReader {
  readonly rowGroups: ForeignRowGroup[] = [];
  /** For each column that our own kernels can't read in some row group, the reason. */
  readonly reasons = new Map<SchemaColumn, string>();
  /** Number of rows of all row groups so far. */
  rows = 0;

  /**
   * @param columns the columns of the schema
   * @param leaves number of column chunks per row group
   * @param pagesEnd offset of the footer, which all pages end before
   */
  constructor(
    private readonly columns: readonly SchemaColumn[],
    private readonly leaves: number,
    private readonly pagesEnd: number,
  ) {}

  /** Adds the next row group. Throws `FormatError` where it contradicts the schema or reaches beyond the file. */
  add(group: ThriftFields, index: number, length: number): void {
    if (length * this.columns.length > foreignPartsMax)
      group.fail(
        `the file has ${length} row groups of ${this.columns.length} columns, more than can be read`,
      );
    const rows = group.size(3);
    const chunks = group.structs(1);
    if (chunks.length !== this.leaves)
      group.fail(
        `row group ${index} has ${chunks.length} column chunks, but the schema has ${this.leaves} columns`,
      );
    this.rows += rows;
    this.rowGroups.push({
      rows,
      chunks: this.columns.map((column) => {
        const own = chunks.slice(column.firstLeaf, column.firstLeaf + column.leaves);
        const parts = own.map((chunk) => this.#readChunk(chunk, column, rows, index));
        return column.flat === null ? enclosing(parts) : parts[0]!;
      }),
    });
  }

  /** @param rows number of rows of the row group */
  #readChunk(chunk: ThriftFields, column: SchemaColumn, rows: number, rowGroup: number): ForeignChunk {
    const place = `column "${column.name}" of row group ${rowGroup}`;
    if ((chunk.binary(1)?.length ?? 0) > 0)
      chunk.fail(`${place} is stored in another file, "${chunk.text(1)}", which is not supported`);
    if (chunk.has(8) || !chunk.has(3)) {
      this.reasons.set(column, 'encrypted');
      return { offset: 0, bytes: 0, codec: 0, uncompressedBytes: 0, ...nothingKnown, bloomFilter: null };
    }
    const fields = chunk.struct(3);
    const { flat } = column;
    if (flat !== null && fields.size(1) !== flat.parquet.type)
      fields.fail(`${place} has a different physical type than the schema`);
    const codec = fields.size(4);
    const reason = reasonOf(codec, fields.integers(2));
    if (reason !== '' && !this.reasons.has(column)) this.reasons.set(column, reason);
    // For a chunk without rows, some writers store offset 0.
    const bytes = rows === 0 ? 0 : fields.size(7);
    const dataAt = fields.size(9);
    // Without a dictionary some writers store 0; with one, some store 0 although the dictionary is the first page.
    const dictionaryAt = fields.size(11, 0);
    const offset = dictionaryAt >= pagesBegin ? Math.min(dictionaryAt, dataAt) : dataAt;
    if (bytes > 0 && (offset < pagesBegin || offset + bytes > this.pagesEnd))
      fields.fail(
        `${place} claims bytes ${offset} to ${offset + bytes}, but the pages end at byte ${this.pagesEnd}`,
      );
    const facts = flat === null || !fields.has(12) ? nothingKnown : chunkFacts(fields.struct(12), flat, rows);
    return {
      offset,
      bytes,
      codec,
      uncompressedBytes: fields.size(6),
      ...facts,
      bloomFilter: flat === null ? null : this.#bloomFilterOf(fields),
      ...(flat === null ? {} : this.#offsetIndexOf(chunk)),
    };
  }

  /** An index that lies outside the file is left out, as a filter is. */
  #offsetIndexOf(chunk: ThriftFields): Pick<ForeignChunk, 'offsetIndex'> {
    if (!chunk.has(4) || !chunk.has(5)) return {};
    const offset = chunk.size(4);
    const bytes = chunk.size(5);
    const isPossible =
      offset >= pagesBegin && offset + bytes <= this.pagesEnd && bytes <= offsetIndexBytesMax;
    return isPossible && bytes > 0 ? { offsetIndex: { offset, bytes } } : {};
  }

  /** Filters are optional: one that lies outside the file is left out. */
  #bloomFilterOf(fields: ThriftFields): ForeignChunk['bloomFilter'] {
    if (!fields.has(14)) return null;
    const offset = fields.size(14);
    const bytes = fields.size(15, 0);
    return offset < pagesBegin || offset + bytes > this.pagesEnd ? null : { offset, bytes };
  }
}

/** Why our own kernels can't read a chunk with this codec and these encodings; empty where they can. */
function reasonOf(codec: number, encodings: readonly number[]): string {
  if (codecsWithoutKernel.has(codec) || codec > codecNumber.lz4)
    return codecsWithoutKernel.get(codec) ?? `codec ${codec}`;
  const unknown = encodings.find((number) => number > encoding.byteStreamSplit);
  return unknown === undefined ? '' : `encoding ${unknown}`;
}

/** The chunk of a nested column: the byte range that encloses all of its leaf chunks. */
function enclosing(chunks: readonly ForeignChunk[]): ForeignChunk {
  const filled = chunks.filter(({ bytes }) => bytes > 0);
  const offset = filled.reduce((least, chunk) => Math.min(least, chunk.offset), Infinity);
  const end = filled.reduce((most, chunk) => Math.max(most, chunk.offset + chunk.bytes), 0);
  return {
    offset: filled.length === 0 ? 0 : offset,
    bytes: filled.length === 0 ? 0 : end - offset,
    codec: chunks[0]!.codec,
    uncompressedBytes: chunks.reduce((sum, chunk) => sum + chunk.uncompressedBytes, 0),
    ...nothingKnown,
    bloomFilter: null,
  };
}
