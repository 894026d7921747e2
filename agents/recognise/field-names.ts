/** Names that programs give to what is the same, by the name that it gets here. */
const sameNames: ReadonlyMap<string, string> = new Map([
  ['msg', 'message'],
  ['severity', 'level'],
  ['lvl', 'level'],
  ['levelname', 'level'],
  ['log_level', 'level'],
  ['loglevel', 'level'],
]);

/** Longer names help nobody at a terminal. */
const nameLengthMax = 63;

/** Gives each key of a log the name of a field, none twice. */
export class FieldNames {
  readonly #taken = new Set<string>();

  /** @param keys all keys there are: one that has a usual name by itself is not given to another */
  constructor(private readonly keys: ReadonlySet<string> = new Set()) {}

  /** The name for a key: its own words in lower case with `_` between them, or what is usual for it. */
  nameFor(key: string): string {
    const own = nameOfKey(key);
    const usual = sameNames.get(own);
    return this.take(usual !== undefined && !this.keys.has(usual) ? usual : own);
  }

  /** `name`, with a number where it is taken. */
  take(name: string): string {
    let free = name;
    for (let number = 2; this.#taken.has(free); number++) free = `${name}_${number}`;
    this.#taken.add(free);
    return free;
  }
}

/** `requestUri`, `Request-URI` and `request.uri` as `request_uri`. */
function nameOfKey(key: string): string {
  const words = key
    .slice(0, 4 * nameLengthMax)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, nameLengthMax)
    .replace(/^_|_$/g, '');
  if (words === '') return 'field';
  return /^[0-9]/.test(words) ? `n_${words}` : words;
}
