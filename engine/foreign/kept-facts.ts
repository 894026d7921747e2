import { promises as fs } from 'node:fs';
import { foreignFootersMax } from '../terms/limits.js';

/** What this thread has read of the files that it was asked about last, as long as their size and the time of their last change stay. */
export class KeptFacts<T> {
  readonly #kept = new Map<string, T>();

  /** @param read gives the facts of a file; it throws where there is none */
  constructor(private readonly read: (path: string) => Promise<T>) {}

  /** The facts of a file. Throws what `read` throws. */
  async of(path: string): Promise<T> {
    const stats = await fs.stat(path, { bigint: true }).catch(() => null);
    if (stats === null) return await this.read(path);
    const key = `${stats.size} ${stats.mtimeNs} ${path}`;
    const facts = this.#kept.get(key) ?? (await this.read(path));
    this.#kept.delete(key);
    this.#kept.set(key, facts);
    for (const oldest of this.#kept.keys())
      if (this.#kept.size > foreignFootersMax) this.#kept.delete(oldest);
    return facts;
  }
}
