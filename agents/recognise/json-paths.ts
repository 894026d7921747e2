import type { SampleLine } from './field-names.js';

/** Limit on the nesting of keys that become fields of their own. */
const depthMax = 4;

/** An object with more keys than this is data of its own, and is stored as its text. */
const childrenMax = 40;

/** A key of the lines' objects, or a path to a nested one. */
export interface JsonPath {
  readonly path: string;
  /** Number of lines that have it. */
  readonly lines: number;
  /** Whether all of its values are numbers. */
  readonly areNumbers: boolean;
  /** Whether some value is an object or an array, so that all values are stored as text. */
  readonly isText: boolean;
}

class PathNode {
  lines = 0;
  numbers = 0;
  /** Values other than null. */
  values = 0;
  objects = 0;
  arrays = 0;
  readonly children = new Map<string, PathNode>();

  add(value: unknown, depth: number): void {
    this.lines++;
    if (value === null) return;
    this.values++;
    if (typeof value === 'number') this.numbers++;
    else if (Array.isArray(value)) this.arrays++;
    else if (typeof value === 'object') {
      this.objects++;
      if (depth < depthMax) this.addKeys(value, depth + 1);
    }
  }

  addKeys(object: object, depth: number): void {
    for (const [key, value] of Object.entries(object)) {
      let child = this.children.get(key);
      if (child === undefined) {
        // Count up to one more than the limit, which shows that there are more.
        if (depth > 0 && this.children.size > childrenMax) continue;
        child = new PathNode();
        this.children.set(key, child);
      }
      child.add(value, depth);
    }
  }

  /** Whether the keys of its objects become fields, instead of its text. */
  get isOpen(): boolean {
    if (this.objects === 0 || this.objects < this.values) return false;
    const { size } = this.children;
    return size > 0 && size <= childrenMax && [...this.children.keys()].every((key) => !key.includes('.'));
  }

  *paths(path: string): Generator<JsonPath> {
    if (path !== '' && !this.isOpen) {
      const isText = this.objects + this.arrays > 0;
      yield { path, lines: this.lines, areNumbers: this.values > 0 && this.numbers === this.values, isText };
      return;
    }
    for (const [key, child] of this.children) yield* child.paths(path === '' ? key : `${path}.${key}`);
  }
}

/** The keys of JSON lines and the paths to nested ones, the most frequent first; and the number of lines that are objects. */
export function jsonPaths(lines: readonly SampleLine[]): {
  readonly lines: number;
  readonly paths: readonly JsonPath[];
} {
  const root = new PathNode();
  let objects = 0;
  for (const { text } of lines) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      // Skip a line that is not JSON, such as one that was cut off.
      continue;
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
    objects++;
    root.addKeys(value, 0);
  }
  const paths = [...root.paths('')];
  const place = new Map(paths.map((path, i) => [path, i]));
  const half = objects / 2;
  // Keys that most lines have keep the order of the lines.
  const rank = ({ lines: count }: JsonPath): number => (count >= half ? Infinity : count);
  paths.sort((a, b) => (rank(a) === rank(b) ? place.get(a)! - place.get(b)! : rank(b) - rank(a)));
  return { lines: objects, paths };
}
