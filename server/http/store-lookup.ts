import {
  knownQueriesMax,
  type ReadableStore,
  type RecordStore,
  type SeveralStore,
} from '../../engine/index.js';

/** Finds the store of an agent, or of several agents whose names are joined by commas, in which no agent has a comma. */
export class StoreLookup {
  readonly #lookup: (agent: string) => ReadableStore | undefined;
  /** Stores of several agents, the one that was made first coming first. */
  readonly #several = new Map<string, SeveralStore>();

  constructor(lookup: (agent: string) => ReadableStore | undefined) {
    this.#lookup = lookup;
  }

  /** Undefined where one of the agents is unknown. The same store as long as the stores of its agents are the same. */
  readonly find = (names: string): RecordStore | undefined => {
    if (!names.includes(',')) return this.#lookup(names);
    const stores: ReadableStore[] = [];
    for (const name of names.split(',')) {
      const store = this.#lookup(name);
      if (store === undefined) return undefined;
      stores.push(store);
    }
    const known = this.#several.get(names);
    if (known?.stores.every((store, k) => store === stores[k]) === true) return known;
    const [first, ...others] = stores;
    const several = first!.joined(others);
    this.#several.set(names, several);
    if (this.#several.size > knownQueriesMax) this.#several.delete(this.#several.keys().next().value!);
    return several;
  };
}
