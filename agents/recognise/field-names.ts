/** The usual field name for names that different programs use for the same thing. */
const sameNames: ReadonlyMap<string, string> = new Map([
  ['msg', 'message'],
  ['severity', 'level'],
  ['lvl', 'level'],
  ['levelname', 'level'],
  ['log_level', 'level'],
  ['loglevel', 'level'],
]);

/** Limit on the length of a name; longer ones are unreadable in a terminal. */
const nameLengthMax = 63;

/** Gives each key of a log a distinct field name. */
export class FieldNames {
  readonly #taken = new Set<string>();

  /** @param keys all keys of the log; a usual name that is itself a key is not given to another key */
  constructor(private readonly keys: ReadonlySet<string> = new Set()) {}

  /** The field name of a key: its words in lower case joined by `_`, or the usual name for it. */
  nameFor(key: string): string {
    const own = nameOfKey(key);
    const usual = sameNames.get(own);
    return this.take(usual !== undefined && !this.keys.has(usual) ? usual : own);
  }

  /** Reserves `name`; appends a number where it is taken. */
  take(name: string): string {
    let free = name;
    for (let number = 2; this.#taken.has(free); number++) free = `${name}_${number}`;
    this.#taken.add(free);
    return free;
  }
}

/** Converts `requestUri`, `Request-URI` and `request.uri` to `request_uri`. */
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
