import { repetition } from '../../parquet/format.js';
import type { ThriftFields } from '../../parquet/thrift-reader.js';
import { foreignColumnsMax, jsonDepthMax } from '../../terms/limits.js';
import { columnTypeOf, type ColumnType } from './column-type.js';

/** A top-level field of a file's schema. */
export interface SchemaColumn {
  readonly name: string;
  readonly isNullable: boolean;
  /** The column's type; null for a nested field, i.e. a group or a repeated field. */
  readonly flat: ColumnType | null;
  /** The type for display, also of a nested field. */
  readonly stored: string;
  /** Index of the first of its column chunks in a row group, and their number (`leaves`). */
  readonly firstLeaf: number;
  readonly leaves: number;
}

/** Names of groups by their `ConvertedType`: 1 is MAP, 2 MAP_KEY_VALUE, 3 LIST. */
const groupNames = new Map([
  [1, 'MAP'],
  [2, 'MAP'],
  [3, 'LIST'],
]);

/** Takes the `SchemaElement`s of parquet.thrift one by one. They come depth first: the root, then each group before its fields. */
export class SchemaReader {
  /** The top-level fields that are complete so far. */
  readonly columns: SchemaColumn[] = [];
  #leaves = 0;
  /** For each group that is still open, outermost first, the number of its fields that have not come yet. */
  readonly #missing: number[] = [];
  #top: ThriftFields | undefined;
  #topLeaf = 0;

  /** Number of column chunks per row group. */
  get leaves(): number {
    return this.#leaves;
  }

  /** Adds the next element. Throws `FormatError` for a schema that is invalid or too large. */
  add(element: ThriftFields, index: number, length: number): void {
    if (length > foreignColumnsMax)
      element.fail(`the schema has ${length} columns, more than the maximum of ${foreignColumnsMax}`);
    const children = element.size(5, 0);
    if (index === 0) {
      this.#missing.push(children);
      return;
    }
    if (this.#missing.at(-1) === 0) element.fail('the schema has more columns than its groups count');
    this.#missing[this.#missing.length - 1]!--;
    if (this.#missing.length === 1) {
      this.#top = element;
      this.#topLeaf = this.#leaves;
    }
    if (children > 0) this.#missing.push(children);
    else this.#leaves++;
    if (this.#missing.length > jsonDepthMax) element.fail(`groups are nested more than ${jsonDepthMax} deep`);
    while (this.#missing.length > 1 && this.#missing.at(-1) === 0) this.#missing.pop();
    if (this.#missing.length === 1) this.#finish();
  }

  /** Throws `FormatError` where groups lack fields. The error has the position of `fields`, the structure that holds the schema. */
  end(fields: ThriftFields): void {
    if (this.#missing.length !== 1 || this.#missing[0] !== 0)
      fields.fail('the schema has fewer columns than its groups count');
  }

  #finish(): void {
    const element = this.#top!;
    const repeats = element.size(3, repetition.required);
    if (repeats > repetition.repeated) element.fail(`the repetition ${repeats} is unknown`);
    const isFlat = element.size(5, 0) === 0 && repeats !== repetition.repeated;
    const flat = isFlat ? columnTypeOf(element) : null;
    this.columns.push({
      name: element.text(4),
      isNullable: repeats !== repetition.required,
      flat,
      stored: flat?.stored ?? nestedText(element, repeats),
      firstLeaf: this.#topLeaf,
      leaves: this.#leaves - this.#topLeaf,
    });
  }
}

function nestedText(element: ThriftFields, repeats: number): string {
  const isGroup = element.size(5, 0) > 0;
  const name = isGroup ? (groupNames.get(element.size(6, -1)) ?? 'group') : columnTypeOf(element).stored;
  return repeats === repetition.repeated ? `repeated ${name}` : name;
}
