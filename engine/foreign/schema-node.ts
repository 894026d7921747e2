import { repetition } from '../parquet/format.js';
import type { ThriftFields } from '../parquet/thrift-reader.js';
import { readAnnotation, type Annotation } from './schema-columns.js';

/**
 * A field of a Parquet schema as a tree of values
 * (https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#nested-types). A definition level says down to which
 * depth the tree is present in an entry of a column chunk: a node's value is missing where the definition level of its
 * leaves is below `presentFrom`.
 */
export type SchemaNode = LeafNode | ListNode | MapNode | StructNode;

interface NodeBase {
  /** Definition level from which the value is present; 0 for a value that can't be null itself. */
  readonly presentFrom: number;
  /** Index of its first column chunk among those of the row group, and their number. */
  readonly firstLeaf: number;
  readonly leaves: number;
}

/** A field with a physical type, stored in one column chunk. */
export interface LeafNode extends NodeBase {
  readonly kind: 'leaf';
  readonly type: LeafType;
}

/** A list. */
export interface ListNode extends NodeBase, Repeated {
  readonly kind: 'list';
  readonly item: SchemaNode;
}

/** A map of keys to values. */
export interface MapNode extends NodeBase, Repeated {
  readonly kind: 'map';
  readonly key: SchemaNode;
  readonly value: SchemaNode;
}

/** A group of named fields. */
export interface StructNode extends NodeBase {
  readonly kind: 'struct';
  readonly fields: readonly { readonly name: string; readonly node: SchemaNode }[];
}

interface Repeated {
  /** The list has an item where the definition level is at least this. */
  readonly itemFrom: number;
  /** An entry of this repetition level begins the next item of the same list. */
  readonly itemLevel: number;
}

/** How the values of a column chunk are stored. */
export interface LeafType {
  /** Number of the physical type. */
  readonly type: number;
  /** Bytes of each value of a FIXED_LEN_BYTE_ARRAY; else 0. */
  readonly valueBytes: number;
  readonly annotation: Annotation;
  readonly definitionMax: number;
  readonly repetitionMax: number;
}

/** Builds the trees of all columns. `elements` is a complete schema, the root first, that is not nested too deeply. */
export function schemaNodes(elements: readonly ThriftFields[]): SchemaNode[] {
  const builder = new NodeBuilder(elements);
  return builder.columns();
}

/** A `SchemaElement` and its children. */
interface Element {
  readonly fields: ThriftFields;
  readonly repeats: number;
  readonly children: readonly Element[];
}

class NodeBuilder {
  #at = 0;
  #leaf = 0;

  constructor(private readonly elements: readonly ThriftFields[]) {}

  columns(): SchemaNode[] {
    return this.#element().children.map((child) => this.#node(child, 0, 0));
  }

  #element(): Element {
    const fields = this.elements[this.#at++]!;
    const children: Element[] = [];
    for (let rest = fields.size(5, 0); rest > 0; rest--) children.push(this.#element());
    return { fields, repeats: fields.size(3, repetition.required), children };
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
    const firstLeaf = this.#leaf;
    if (children.length > 0) {
      const named = children.map((child) => ({
        name: child.fields.text(4),
        node: this.#node(child, definition, level),
      }));
      return { kind: 'struct', presentFrom, firstLeaf, leaves: this.#leaf - firstLeaf, fields: named };
    }
    this.#leaf++;
    const type = {
      type: fields.size(1),
      valueBytes: fields.size(2, 0),
      annotation: readAnnotation(fields),
      definitionMax: definition,
      repetitionMax: level,
    };
    return { kind: 'leaf', presentFrom, firstLeaf, leaves: 1, type };
  }

  #list(definition: number, level: number, presentFrom: number, readItem: () => SchemaNode): SchemaNode {
    const firstLeaf = this.#leaf;
    const item = readItem();
    const leaves = this.#leaf - firstLeaf;
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
    const firstLeaf = this.#leaf;
    const key = this.#node(repeated.children[0]!, definition + 1, level + 1);
    const value = this.#node(repeated.children[1]!, definition + 1, level + 1);
    const leaves = this.#leaf - firstLeaf;
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
