import { FormatError } from '../parquet/format.js';
import { JsonText } from './value-texts.js';
import { leafFormatOf, type LeafFormat, type LeafValue } from './leaf-format.js';
import type { LeafPage, PageReader } from './page-reader.js';
import type { LeafType, ListNode, MapNode, SchemaNode } from './schema-node.js';

/** Iterates over the entries of a column chunk. */
export class LeafCursor {
  readonly format: LeafFormat;
  #page: LeafPage | null;
  #entry = 0;
  #value = 0;

  constructor(
    readonly type: LeafType,
    private readonly pages: PageReader,
  ) {
    this.format = leafFormatOf(type);
    this.#page = this.#nextPage();
  }

  /** Definition level of the current entry; -1 after the last entry. */
  get definition(): number {
    if (this.#page === null) return -1;
    return this.#page.definitions === null ? this.type.definitionMax : this.#page.definitions[this.#entry]!;
  }

  /** Repetition level of the current entry; 0 at the beginning of a row and after the last entry. */
  get repetition(): number {
    return this.#page?.repetitions?.[this.#entry] ?? 0;
  }

  /** The value of the current entry, which must have one. */
  get value(): LeafValue {
    const { values, codes } = this.#page!;
    return this.format.read(values, codes === null ? this.#value : codes[this.#value]!);
  }

  /** Goes to the next entry. Throws `FormatError` after the last one. */
  advance(): void {
    const page = this.#page;
    if (page === null) throw new FormatError('the column has fewer values than rows', 0);
    if (this.definition === this.type.definitionMax) this.#value++;
    this.#entry++;
    if (this.#entry < page.entries) return;
    this.#page = this.#nextPage();
    this.#entry = 0;
    this.#value = 0;
  }

  #nextPage(): LeafPage | null {
    for (;;) {
      const page = this.pages.next();
      if (page === null || page.entries > 0) return page;
    }
  }
}

/**
 * Assembles rows from the entries of a column's leaves (Dremel's record assembly). Methods throw `FormatError` where the
 * leaves contradict each other.
 */
export class RowReader {
  readonly #json = new JsonText();

  /** @param cursors the cursors of the node's leaves, in order */
  constructor(
    private readonly node: SchemaNode,
    private readonly cursors: readonly LeafCursor[],
  ) {}

  /** Reads the next row of a column that is not nested; null where it has no value. */
  value(): LeafValue | null {
    const cursor = this.cursors[0]!;
    const value = cursor.definition < cursor.type.definitionMax ? null : cursor.value;
    cursor.advance();
    return value;
  }

  /** Reads the next row as JSON; null where it has no value. Throws `limit` for one that is too long. */
  json(): string | null {
    const isMissing = this.#isMissing(this.node);
    this.#write(this.node);
    for (const { repetition } of this.cursors)
      if (repetition !== 0) throw new FormatError('the columns of a row end at different places', 0);
    const text = this.#json.take();
    return isMissing ? null : text;
  }

  /** Skips the next row. */
  skipRow(): void {
    for (const cursor of this.cursors)
      do cursor.advance();
      while (cursor.repetition !== 0);
  }

  #cursorsOf({ firstLeaf, leaves }: SchemaNode): readonly LeafCursor[] {
    const from = firstLeaf - this.node.firstLeaf;
    return from === 0 && leaves === this.cursors.length
      ? this.cursors
      : this.cursors.slice(from, from + leaves);
  }

  #isMissing(node: SchemaNode): boolean {
    return this.#isBelow(node, node.presentFrom);
  }

  /** Whether the definition levels of a node's leaves are below `level`. Throws where only some of them are. */
  #isBelow(node: SchemaNode, level: number): boolean {
    const [first, ...others] = this.#cursorsOf(node);
    if (first!.definition < 0) throw new FormatError('the column has fewer values than rows', 0);
    const isBelow = first!.definition < level;
    for (const { definition } of others)
      if (definition < level !== isBelow)
        throw new FormatError('the columns disagree on which values are null', 0);
    return isBelow;
  }

  /** Whether the list continues with another item after the one that was just read. */
  #isContinued(node: ListNode | MapNode): boolean {
    const [first, ...others] = this.#cursorsOf(node);
    const { repetition } = first!;
    for (const other of others)
      if (other.repetition !== repetition)
        throw new FormatError('the columns disagree on where list items begin', 0);
    if (repetition > node.itemLevel) throw new FormatError('a list item begins inside another one', 0);
    return repetition === node.itemLevel;
  }

  #skip(node: SchemaNode): void {
    for (const cursor of this.#cursorsOf(node)) cursor.advance();
  }

  #write(node: SchemaNode): void {
    if (this.#isMissing(node)) {
      this.#json.add('null');
      this.#skip(node);
      return;
    }
    switch (node.kind) {
      case 'leaf':
        this.#json.add(this.#leafJson(node));
        return;
      case 'struct':
        this.#json.add('{');
        node.fields.forEach(({ name, node: field }, i) => {
          this.#json.addName(name, i === 0);
          this.#write(field);
        });
        this.#json.add('}');
        return;
      case 'list':
        this.#writeItems(node, '[', ']', () => this.#write(node.item));
        return;
      case 'map':
        this.#writeItems(node, '{', '}', () => this.#writePair(node));
        return;
    }
  }

  #writeItems(node: ListNode | MapNode, open: string, close: string, writeItem: () => void): void {
    this.#json.add(open);
    if (this.#isBelow(node, node.itemFrom)) this.#skip(node);
    else
      for (;;) {
        writeItem();
        if (!this.#isContinued(node)) break;
        this.#json.add(',');
      }
    this.#json.add(close);
  }

  #writePair({ key, value }: MapNode): void {
    this.#json.addKey(() => this.#write(key));
    this.#write(value);
  }

  #leafJson(node: SchemaNode): string {
    const cursor = this.#cursorsOf(node)[0]!;
    const text = cursor.format.text(cursor.value);
    cursor.advance();
    return cursor.format.isJson ? text : JSON.stringify(text);
  }
}
