import { spareHotBytesMax } from '../terms/limits.js';
import type { Schema } from '../terms/schema.js';
import { makeGrowingColumn, type GrowingColumn } from './growing-column.js';

/** Less than this is quickly made. */
const keptBytesMin = 1024 * 1024;

interface Spare {
  readonly types: string;
  readonly columns: readonly GrowingColumn[];
  readonly memoryBytes: number;
}

function typesOf(schema: Schema): string {
  return schema.fields.map(({ type }) => type).join();
}

/**
 * The columns of hot files that were sealed, for the next ones of fields of the same types. A busy log fills tens of megabytes several times a
 * second: were they made anew, the garbage collector would run each time, and each page would be touched for the first time.
 */
export class SpareColumns {
  /** The one given last comes last. */
  readonly #spares: Spare[] = [];
  #memoryBytes = 0;

  constructor(private readonly bytesMax: number) {}

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /** Empty columns of a schema, which are the caller's until it gives them back. */
  take(schema: Schema): readonly GrowingColumn[] {
    const types = typesOf(schema);
    const index = this.#spares.findLastIndex((spare) => spare.types === types);
    return index < 0
      ? schema.fields.map((field) => makeGrowingColumn(field.type))
      : this.#remove(index).columns;
  }

  /** Takes columns that nobody reads any more. Those that came longest ago go when there are too many. */
  give(schema: Schema, columns: readonly GrowingColumn[]): void {
    const memoryBytes = columns.reduce((sum, column) => sum + column.memoryBytes, 0);
    if (memoryBytes < keptBytesMin || memoryBytes > this.bytesMax) return;
    for (const column of columns) column.clear();
    this.#spares.push({ types: typesOf(schema), columns, memoryBytes });
    this.#memoryBytes += memoryBytes;
    while (this.#memoryBytes > this.bytesMax) this.#remove(0);
  }

  #remove(index: number): Spare {
    const [spare] = this.#spares.splice(index, 1);
    this.#memoryBytes -= spare!.memoryBytes;
    return spare!;
  }
}

/** Of all agents of the process: bounded together. */
export const spareColumns = new SpareColumns(spareHotBytesMax);
