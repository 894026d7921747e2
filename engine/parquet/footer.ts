import type { Bounds } from './statistics.js';
import type { Codec } from './compression.js';

/**
 * Name of the column of positions, which is the first column of every file. It cannot clash with a field, because names of fields begin
 * with a letter.
 */
export const cursorColumn = '_cursor';

/** What a column of the file holds. `cursor` and `time` are integers with their own encoding and schema. */
export type ColumnContent = 'cursor' | 'int' | 'float' | 'string' | 'time' | 'bool';

/** A column of a file. */
export interface FileColumn {
  readonly name: string;
  readonly content: ColumnContent;
}

/** The description of a column chunk in the footer. Offsets count from the start of the file. */
export interface ChunkPlace {
  readonly offset: number;
  /** Bytes of all pages with their headers. */
  readonly bytes: number;
  /** 0 when there is no dictionary page. */
  readonly dictionaryPageBytes: number;
  readonly uncompressedBytes: number;
  readonly dataEncoding: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly bounds: Bounds | null;
  /** Parquet's Bloom filter of the chunk, with its header. `readFooter` does not read it: this program's readers find it elsewhere. */
  readonly bloomFilter?: { readonly offset: number; readonly bytes: number } | undefined;
}

/** A row group, as the footer describes it. */
export interface FooterRowGroup {
  readonly rows: number;
  /** One for each column of the file, in the same order. */
  readonly chunks: readonly ChunkPlace[];
}

/** Everything that the footer of a file says. */
export interface Footer {
  readonly columns: readonly FileColumn[];
  readonly rows: number;
  readonly codec: Codec;
  readonly rowGroups: readonly FooterRowGroup[];
  readonly keyValues: ReadonlyMap<string, string>;
}
