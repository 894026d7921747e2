import { rowGroupBytesMax, rowGroupRowsMax, spareHotBytesMax } from '../terms/limits.js';
import type { Schema } from '../terms/schema.js';
import { BatchBuilder } from './batch-builder.js';

/** Builders with less memory are not kept, because new ones are made quickly. */
const keptBytesMin = 1024 * 1024;
/** Rows and bytes of a hot file when it is sealed. */
const usual = { rows: rowGroupRowsMax, bytes: rowGroupBytesMax };

function typesOf({ fields }: Schema): string {
  return fields.map(({ type }) => type).join();
}

/**
 * Keeps the builders of sealed hot files for later hot files whose fields have the same types. A busy log fills tens of megabytes several
 * times a second. With new memory each time, the garbage collector would run as often, and the operating system would map each page again.
 */
export class SpareBuilders {
  /** The oldest first. */
  readonly #spares: BatchBuilder[] = [];
  #memoryBytes = 0;

  constructor(private readonly bytesMax: number) {}

  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /**
   * A builder without rows for columns of the schema's types. The caller may return it with `giveBack`. The `schema` of a reused builder may
   * have other field names.
   */
  take(schema: Schema): BatchBuilder {
    const types = typesOf(schema);
    const index = this.#spares.findLastIndex((spare) => typesOf(spare.schema) === types);
    return index < 0 ? new BatchBuilder(schema, usual) : this.#remove(index);
  }

  /** Takes back a builder whose rows are no longer read. Drops the oldest builders when they take too much memory. */
  giveBack(builder: BatchBuilder): void {
    const { memoryBytes } = builder;
    if (memoryBytes < keptBytesMin || memoryBytes > this.bytesMax) return;
    builder.clear();
    this.#spares.push(builder);
    this.#memoryBytes += builder.memoryBytes;
    while (this.#memoryBytes > this.bytesMax) this.#remove(0);
  }

  #remove(index: number): BatchBuilder {
    const [spare] = this.#spares.splice(index, 1);
    this.#memoryBytes -= spare!.memoryBytes;
    return spare!;
  }
}

/** The spare builders of all agents of the process, with one common bound. */
export const spareBuilders = new SpareBuilders(spareHotBytesMax);
