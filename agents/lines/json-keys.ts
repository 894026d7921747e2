/** A key to search in JSON lines. */
export interface JsonKey {
  readonly name: string;
  /** Number of the key whose object holds this one, or `ofLine`. */
  readonly parent: number;
  /** Number of the name whose value this key has; `noName` for a key whose object only contains other keys to search. */
  readonly field: number;
}

/** Parent of the keys in the line's own object. */
export const ofLine = -1;
export const noName = -1;

/**
 * The keys to search so that each name is found: as a key of the line's own object and, where it has dots, also as a path of
 * keys into nested objects. The first keys are the names themselves, in order; those of paths follow, each after its parent.
 * Keys of one object are distinct if the names are.
 */
export function jsonKeys(names: readonly string[]): readonly JsonKey[] {
  const keys = names.map((name, field) => ({ name, parent: ofLine, field }));
  const numbers = new Map(names.map((name, number) => [`${ofLine} ${name}`, number]));
  names.forEach((path, field) => {
    if (!path.includes('.')) return;
    let parent = ofLine;
    for (const name of path.split('.')) {
      const place = `${parent} ${name}`;
      let number = numbers.get(place);
      if (number === undefined) {
        number = keys.push({ name, parent, field: noName }) - 1;
        numbers.set(place, number);
      }
      parent = number;
    }
    keys[parent]!.field = field;
  });
  return keys;
}
