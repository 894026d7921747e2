import type { StoredType } from './stored-type.js';

/** How Parquet stores the values of a column that is not nested. */
export interface ParquetStorage {
  /** Number of the physical type (`Type` of parquet.thrift). */
  readonly type: number;
  /** Bytes per value of a FIXED_LEN_BYTE_ARRAY or an INT96; else 0. */
  readonly valueBytes: number;
  /** Whether integers are unsigned. */
  readonly isUnsigned: boolean;
  /** Decimal digits after the point of a DECIMAL that is stored as an integer; else 0. */
  readonly scale: number;
}

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
export interface LeafType extends ParquetStorage {
  readonly stored: StoredType;
  readonly definitionMax: number;
  readonly repetitionMax: number;
}

/** The types of a node's leaves, in order. */
export function leafTypes(node: SchemaNode): LeafType[] {
  switch (node.kind) {
    case 'leaf':
      return [node.type];
    case 'struct':
      return node.fields.flatMap((field) => leafTypes(field.node));
    case 'list':
      return leafTypes(node.item);
    case 'map':
      return [...leafTypes(node.key), ...leafTypes(node.value)];
  }
}
