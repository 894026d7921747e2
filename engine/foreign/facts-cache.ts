import { promises as fs } from 'node:fs';
import { foreignFootersMax } from '../terms/limits.js';
import type { ForeignPlace } from './foreign-file.js';

/**
 * Caches facts about files for this thread, up to `foreignFootersMax` of them; the least recently used go first. A file's
 * facts are read again when its size or modification time changes.
 */
export class FactsCache<T> {
  readonly #kept = new Map<string, T>();

  /** @param read reads the facts of a file; throws where the file is missing or invalid */
  constructor(private readonly read: (place: ForeignPlace) => Promise<T>) {}

  /** Returns the facts of a file, from the cache where possible. Throws what `read` throws. */
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

/** Cache key of a file; null where the file does not exist. The folder of an object's copy identifies its version. */
async function keyOf({ path, copy }: ForeignPlace): Promise<string | null> {
  if (copy !== undefined) return copy.folder;
  const stats = await fs.stat(path, { bigint: true }).catch(() => null);
  return stats === null ? null : `${stats.size} ${stats.mtimeNs} ${path}`;
}
