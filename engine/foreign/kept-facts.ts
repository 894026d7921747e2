import { promises as fs } from 'node:fs';
import { foreignFootersMax } from '../terms/limits.js';
import type { ForeignPlace } from './foreign-file.js';

/** What this thread has read of the files that it was asked about last, as long as their size and the time of their last change stay. */
export class KeptFacts<T> {
  readonly #kept = new Map<string, T>();

  /** @param read gives the facts of a file; it throws where there is none */
  constructor(private readonly read: (place: ForeignPlace) => Promise<T>) {}

  /** The facts of a file. Throws what `read` throws. */
  async of(place: ForeignPlace): Promise<T> {
    const key = await keyOf(place);
    if (key === null) return await this.read(place);
    const facts = this.#kept.get(key) ?? (await this.read(place));
    this.#kept.delete(key);
    this.#kept.set(key, facts);
    for (const oldest of this.#kept.keys())
      if (this.#kept.size > foreignFootersMax) this.#kept.delete(oldest);
    return facts;
  }
}

/** Null for a file that is not there. Of an object, the folder is that of one version. */
async function keyOf({ path, copy }: ForeignPlace): Promise<string | null> {
  if (copy !== undefined) return copy.folder;
  const stats = await fs.stat(path, { bigint: true }).catch(() => null);
  return stats === null ? null : `${stats.size} ${stats.mtimeNs} ${path}`;
}
