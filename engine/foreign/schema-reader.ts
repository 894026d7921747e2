import { foreignColumnsMax, jsonDepthMax } from '../core/limits.js';
import { repetition } from '../parquet/format.js';
import type { ThriftFields } from '../parquet/thrift-reader.js';
import type { SchemaNode } from './parquet-schema.js';
import { columnTypeOf, type ColumnType } from './schema-columns.js';

/** A top-level field of a file's schema. */
export interface SchemaColumn {
  readonly name: string;
  /** The field id that the writer gave it, for tables whose columns are known by numbers. */
  readonly id: number | undefined;
  readonly isNullable: boolean;
  /** The column's type; null for a nested field, i.e. a group or a repeated field. */
  readonly flat: ColumnType | null;
  /** The type for display, also of a nested field. */
  readonly stored: string;
  readonly node: SchemaNode;
}

/** A `SchemaElement` and its children. */
interface Element {
  readonly fields: ThriftFields;
  readonly repeats: number;
  readonly children: Element[];
  /** Number of children that have not come yet. */
  missing: number;
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
  /** The groups that are still open, outermost first. */
  readonly #open: Element[] = [];

  /** Number of column chunks per row group. */
  get leaves(): number {
    return this.#leaves;
  }

  /** Adds the next element. Throws `FormatError` for a schema that is invalid or too large. */
  add(fields: ThriftFields, index: number, length: number): void {
    if (length > foreignColumnsMax)
      fields.fail(`the schema has ${length} columns, more than the maximum of ${foreignColumnsMax}`);
    const missing = fields.size(5, 0);
    const element = { fields, repeats: fields.size(3, repetition.required), children: [], missing };
    const open = this.#open;
    if (index > 0) {
      const parent = open.at(-1)!;
      if (parent.missing === 0) fields.fail('the schema has more columns than its groups count');
      parent.missing--;
      parent.children.push(element);
    }
    if (index === 0 || missing > 0) open.push(element);
    if (open.length > jsonDepthMax) fields.fail(`groups are nested more than ${jsonDepthMax} deep`);
    while (open.length > 1 && open.at(-1)!.missing === 0) open.pop();
    const column = open.length === 1 ? open[0]!.children.pop() : undefined;
    if (column !== undefined) this.#finish(column);
  }

  /** Throws `FormatError` where groups lack fields. The error has the position of `fields`, the structure that holds the schema. */
  end(fields: ThriftFields): void {
    if (this.#open.length !== 1 || this.#open[0]!.missing !== 0)
      fields.fail('the schema has fewer columns than its groups count');
  }

  #finish(element: Element): void {
    const { fields, repeats, children } = element;
    if (repeats > repetition.repeated) fields.fail(`the repetition ${repeats} is unknown`);
    const isGroup = children.length > 0;
    const type = isGroup ? null : columnTypeOf(fields);
    const name = type?.stored ?? groupNames.get(fields.size(6, -1)) ?? 'group';
    this.columns.push({
      name: fields.text(4),
      id: fields.has(9) ? fields.integer(9) : undefined,
      isNullable: repeats !== repetition.required,
      flat: repeats === repetition.repeated ? null : type,
      stored: repeats === repetition.repeated ? `repeated ${name}` : name,
      node: this.#node(element, 0, 0),
    });
  }

  /** @param definition, level the definition and repetition levels of the enclosing element */
  #node(element: Element, definition: number, level: number): SchemaNode {
    switch (element.repeats) {
      case repetition.repeated:
        // A repeated field outside a list or map is itself a list, which is never null.
        return this.#list(definition, level, 0, () => this.#value(element, definition + 1, level + 1, 0));
      case repetition.optional:
        return this.#value(element, definition + 1, level, definition + 1);
      default:
        return this.#value(element, definition, level, 0);
    }
  }

  #value(element: Element, definition: number, level: number, presentFrom: number): SchemaNode {
    const { fields, children } = element;
    const [repeated] = children;
    if (children.length === 1 && repeated!.repeats === repetition.repeated) {
      const kind = groupKind(fields);
      if (kind === 'list')
        return this.#list(definition, level, presentFrom, () =>
          this.#item(element, repeated!, definition + 1, level + 1),
        );
      if (kind === 'map' && repeated!.children.length === 2)
        return this.#map(repeated!, definition, level, presentFrom);
    }
    const firstLeaf = this.#leaves;
    if (children.length > 0) {
      const named = children.map((child) => ({
        name: child.fields.text(4),
        node: this.#node(child, definition, level),
      }));
      return { kind: 'struct', presentFrom, firstLeaf, leaves: this.#leaves - firstLeaf, fields: named };
    }
    this.#leaves++;
    const { parquet, meaning } = columnTypeOf(fields);
    const type = { ...parquet, stored: meaning, definitionMax: definition, repetitionMax: level };
    return { kind: 'leaf', presentFrom, firstLeaf, leaves: 1, type };
  }

  #list(definition: number, level: number, presentFrom: number, readItem: () => SchemaNode): SchemaNode {
    const firstLeaf = this.#leaves;
    const item = readItem();
    const leaves = this.#leaves - firstLeaf;
    const levels = { itemFrom: definition + 1, itemLevel: level + 1 };
    return { kind: 'list', presentFrom, firstLeaf, leaves, ...levels, item };
  }

  /** The items of a list: the child of the repeated field or, in files of older writers, the repeated field itself. */
  #item(list: Element, repeated: Element, definition: number, level: number): SchemaNode {
    const [inner] = repeated.children;
    const name = repeated.fields.text(4);
    const isItem =
      repeated.children.length !== 1 ||
      inner!.repeats === repetition.repeated ||
      name === 'array' ||
      name === `${list.fields.text(4)}_tuple`;
    return isItem ? this.#value(repeated, definition, level, 0) : this.#node(inner!, definition, level);
  }

  #map(repeated: Element, definition: number, level: number, presentFrom: number): SchemaNode {
    const firstLeaf = this.#leaves;
    const key = this.#node(repeated.children[0]!, definition + 1, level + 1);
    const value = this.#node(repeated.children[1]!, definition + 1, level + 1);
    const leaves = this.#leaves - firstLeaf;
    const levels = { itemFrom: definition + 1, itemLevel: level + 1 };
    return { kind: 'map', presentFrom, firstLeaf, leaves, ...levels, key, value };
  }
}

/** The kind of a group by its logical type MAP or LIST, or by the older converted types MAP, MAP_KEY_VALUE and LIST. */
function groupKind(fields: ThriftFields): 'map' | 'list' | 'struct' {
  const logical = fields.has(10) ? fields.struct(10) : null;
  const converted = fields.size(6, -1);
  if (logical?.has(2) === true || converted === 1 || converted === 2) return 'map';
  return logical?.has(3) === true || converted === 3 ? 'list' : 'struct';
}
