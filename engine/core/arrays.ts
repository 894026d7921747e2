/**
 * The first index in [0, `length`) for which `isReached` holds, found by bisection; `length` if there is none. It must hold for every index
 * after the first one.
 */
export function firstIndex(length: number, isReached: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isReached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The items by their keys, in order. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** A stable sort: the indexes of `keys` in ascending order of the keys. Takes linear time if there are few different keys. */
export function stableOrder(keys: Uint32Array | Float64Array): Uint32Array {
  const counts = new Map<number, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  let at = 0;
  const next = new Map<number, number>();
  for (const key of [...counts.keys()].sort((a, b) => a - b)) {
    next.set(key, at);
    at += counts.get(key)!;
  }
  const order = new Uint32Array(keys.length);
  for (let row = 0; row < keys.length; row++) {
    const key = keys[row]!;
    const place = next.get(key)!;
    order[place] = row;
    next.set(key, place + 1);
  }
  return order;
}
