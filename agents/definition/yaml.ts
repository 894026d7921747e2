import { EVENT_ID, getScalarValue, parseEvents, SCALAR_STYLE, YAMLException, type Event } from 'js-yaml';

/** A position in a file; line and column count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A scalar value. */
export interface YamlScalar extends Place {
  readonly kind: 'scalar';
  /** As written in the file: `1_000` and `0x1F` stay these texts, whatever YAML would convert them to. */
  readonly text: string;
  /** Whether it is neither quoted nor a block scalar; only plain scalars can be null. */
  readonly plain: boolean;
}

/** A list. */
export interface YamlSequence extends Place {
  readonly kind: 'sequence';
  readonly items: readonly YamlNode[];
}

/** An entry of a mapping; its position is that of the key. */
export interface YamlEntry extends Place {
  readonly key: string;
  readonly value: YamlNode;
}

/** A mapping. */
export interface YamlMapping extends Place {
  readonly kind: 'mapping';
  /** In the order of the file, with distinct keys. */
  readonly entries: readonly YamlEntry[];
}

export type YamlNode = YamlScalar | YamlSequence | YamlMapping;

/** A mistake in a YAML text. */
export interface YamlMistake extends Place {
  readonly message: string;
}

/** Result of parsing a YAML text. */
export interface YamlFile {
  /** Undefined for an empty file, and for one that can't be parsed. */
  readonly root: YamlNode | undefined;
  readonly mistakes: readonly YamlMistake[];
}

/** Limit on nesting, to protect the stack; no configuration nests deeper. */
const depthMax = 50;

/** Tags that do not change the meaning here. Other tags ask for conversions that are not supported. */
const tagsAllowed =
  /^(?:!|!!(?:str|int|float|bool|null|map|seq)|!<tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)>)$/;

/** The usual mistake of a pattern in double quotes: `"\d"`. */
const quotesReason =
  'in double quotes a backslash begins a YAML escape, and this is not a valid one: put patterns into single quotes';

/** Clearer messages for reasons of js-yaml that name a rule of YAML but not the actual or most likely mistake. */
const plainerReasons: ReadonlyMap<string, string> = new Map([
  ['unknown escape sequence', quotesReason],
  ['expected hexadecimal character', quotesReason],
  [
    'deficient indentation',
    'a bracket or a quotation mark above this line is not closed, or this line is not indented',
  ],
]);

/**
 * Parses one YAML document into nodes with positions. js-yaml's own constructor would convert texts to numbers and drop the
 * positions. A syntax error ends the parsing; duplicate keys and similar mistakes are all reported.
 */
export function parseYaml(source: string): YamlFile {
  const text = source.replace(/^\ufeff/, '');
  const places = new Places(text);
  let events: Event[];
  try {
    events = parseEvents(text, { maxDepth: depthMax });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const place = { line: (error.mark?.line ?? 0) + 1, column: (error.mark?.column ?? 0) + 1 };
    const reason = plainerReasons.get(error.reason) ?? error.reason;
    return { root: undefined, mistakes: [{ ...place, message: `this is not valid YAML: ${reason}` }] };
  }
  return new TreeBuilder(text, events, places).build();
}

/** Converts offsets to lines and columns. */
class Places {
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    for (const match of text.matchAll(/\r\n|\r|\n/g)) this.#lineStarts.push(match.index + match[0].length);
  }

  at(offset: number): Place {
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#lineStarts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - this.#lineStarts[low]! + 1 };
  }
}

class TreeBuilder {
  readonly #text: string;
  readonly #events: readonly Event[];
  readonly #places: Places;
  readonly #anchors = new Map<string, YamlNode>();
  readonly #mistakes: YamlMistake[] = [];
  #next = 0;
  /** Position of an empty value: that of the last node before it. */
  #lastPlace: Place = { line: 1, column: 1 };

  constructor(text: string, events: readonly Event[], places: Places) {
    this.#text = text;
    this.#events = events;
    this.#places = places;
  }

  build(): YamlFile {
    let root: YamlNode | undefined;
    let documents = 0;
    while (this.#next < this.#events.length) {
      const event = this.#events[this.#next++]!;
      if (event.type !== EVENT_ID.DOCUMENT) continue;
      documents++;
      while (this.#events[this.#next] !== undefined && this.#events[this.#next]!.type !== EVENT_ID.POP) {
        const node = this.#node();
        if (documents === 1) root = node;
        else if (documents === 2)
          this.#mistake(node, 'a second YAML document begins here; a file must have only one');
      }
      this.#next++;
    }
    return { root, mistakes: this.#mistakes };
  }

  #mistake(place: Place, message: string): void {
    this.#mistakes.push({ line: place.line, column: place.column, message });
  }

  #node(): YamlNode {
    const event = this.#events[this.#next++]!;
    switch (event.type) {
      case EVENT_ID.SCALAR: {
        const empty = event.valueStart < 0;
        if (!empty) this.#lastPlace = this.#places.at(event.valueStart);
        const quoted =
          event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
        const place = {
          line: this.#lastPlace.line,
          column: this.#lastPlace.column - (quoted && !empty ? 1 : 0),
        };
        const text = empty ? '' : getScalarValue(this.#text, event);
        const node: YamlNode = { kind: 'scalar', text, plain: event.style === SCALAR_STYLE.PLAIN, ...place };
        return this.#tagged(event, node);
      }
      case EVENT_ID.SEQUENCE: {
        const place = this.#places.at(event.start);
        this.#lastPlace = place;
        const items: YamlNode[] = [];
        while (this.#events[this.#next]!.type !== EVENT_ID.POP) items.push(this.#node());
        this.#next++;
        return this.#tagged(event, { kind: 'sequence', items, ...place });
      }
      case EVENT_ID.MAPPING: {
        const place = this.#places.at(event.start);
        this.#lastPlace = place;
        return this.#tagged(event, { kind: 'mapping', entries: this.#entries(), ...place });
      }
      case EVENT_ID.ALIAS:
        return this.#alias(event.anchorStart, event.anchorEnd);
      default:
        // The parser gives no other event in the place of a value.
        return { kind: 'scalar', text: '', plain: true, ...this.#lastPlace };
    }
  }

  #alias(anchorStart: number, anchorEnd: number): YamlNode {
    const place = this.#places.at(anchorStart - 1);
    this.#lastPlace = place;
    const name = this.#text.slice(anchorStart, anchorEnd);
    const node = this.#anchors.get(name);
    if (node !== undefined) return node;
    this.#mistake(place, `no anchor "&${name}" is defined before this alias`);
    return { kind: 'scalar', text: '', plain: true, ...place };
  }

  /** Registers the anchor of a node once the node is complete, so a node can't contain itself, and checks the tag. */
  #tagged(
    event: { anchorStart: number; anchorEnd: number; tagStart: number; tagEnd: number },
    node: YamlNode,
  ): YamlNode {
    if (event.anchorStart >= 0) this.#anchors.set(this.#text.slice(event.anchorStart, event.anchorEnd), node);
    const tag = event.tagStart < 0 ? '!' : this.#text.slice(event.tagStart, event.tagEnd);
    if (!tagsAllowed.test(tag))
      this.#mistake(this.#places.at(event.tagStart), `the tag "${tag}" is not supported`);
    return node;
  }

  #entries(): YamlEntry[] {
    const entries = new Map<string, YamlEntry>();
    const merged: YamlNode[] = [];
    while (this.#events[this.#next]!.type !== EVENT_ID.POP) {
      const key = this.#node();
      const value = this.#node();
      if (key.kind !== 'scalar') {
        this.#mistake(key, 'a key must be a word, not a list or a mapping');
      } else if (key.text === '<<' && key.plain) {
        merged.push(value);
      } else {
        const first = entries.get(key.text);
        if (first !== undefined) {
          this.#mistake(key, `the key "${key.text}" is given twice; it is already on line ${first.line}`);
        } else {
          entries.set(key.text, { key: key.text, value, line: key.line, column: key.column });
        }
      }
    }
    this.#next++;
    for (const node of merged) this.#merge(node, entries);
    return [...entries.values()];
  }

  /** YAML's merge key: adds entries that the mapping lacks from the other mappings, the first of which takes precedence. */
  #merge(node: YamlNode, entries: Map<string, YamlEntry>): void {
    const sources = node.kind === 'sequence' ? node.items : [node];
    for (const source of sources) {
      if (source.kind !== 'mapping') {
        this.#mistake(source, '"<<" merges a mapping or a list of mappings');
        continue;
      }
      for (const entry of source.entries) if (!entries.has(entry.key)) entries.set(entry.key, entry);
    }
  }
}
