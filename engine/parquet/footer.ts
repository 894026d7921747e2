import type { Bounds } from './statistics.js';
import type { Codec } from './compression.js';

/** The name of the positions' column, which is the first of every file. No field has it: they begin with a letter. */
export const cursorColumn = '_cursor';

/** What a column of the file holds. `cursor` and `time` are integers too, but written and announced in their own way. */
export type ColumnContent = 'cursor' | 'int' | 'float' | 'string' | 'time' | 'bool';

export interface FileColumn {
  readonly name: string;
  readonly content: ColumnContent;
}

/** One column chunk, as the footer describes it. Offsets are those of the file. */
export interface ChunkPlace {
  readonly offset: number;
  /** Of both pages, with their headers. */
  readonly bytes: number;
  /** 0 when there is no dictionary page. */
  readonly dictionaryPageBytes: number;
  readonly uncompressedBytes: number;
  readonly dataEncoding: number;
  readonly rows: number;
  readonly nullCount: number;
  readonly bounds: Bounds | null;
  /** Parquet's Bloom filter of the chunk, with its header. Not read back: our own readers find it elsewhere. */
  readonly bloomFilter?: { readonly offset: number; readonly bytes: number } | undefined;
}

export interface FooterRowGroup {
  readonly rows: number;
  /** One for each column of the file, in their order. */
  readonly chunks: readonly ChunkPlace[];
}

/** All that the footer of a file says. */
export interface Footer {
  readonly columns: readonly FileColumn[];
  readonly rows: number;
  readonly codec: Codec;
  readonly rowGroups: readonly FooterRowGroup[];
  readonly keyValues: ReadonlyMap<string, string>;
}
