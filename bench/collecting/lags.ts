/** A commit: when it was durable, and how far each of its files is stored since, by path. */
export interface Committed {
  readonly atMs: number;
  readonly ends: readonly (readonly [path: string, offset: number])[];
}

/** Lines that were written to a file: when, and where they end. */
export interface Written {
  readonly atMs: number;
  readonly path: string;
  readonly endOffset: number;
}

/**
 * How long it took from each write to the commit that stored the last line of it, in milliseconds, in the order of the writes. Throws when one
 * was never stored.
 */
export function lagsOf(written: readonly Written[], committed: readonly Committed[]): number[] {
  const byPath = new Map<string, { readonly atMs: number; readonly offset: number }[]>();
  for (const { atMs, ends } of committed) {
    for (const [path, offset] of ends) {
      const known = byPath.get(path);
      if (known === undefined) byPath.set(path, [{ atMs, offset }]);
      else known.push({ atMs, offset });
    }
  }
  const next = new Map<string, number>();
  return written.map(({ atMs, path, endOffset }) => {
    const commits = byPath.get(path) ?? [];
    let i = next.get(path) ?? 0;
    while (i < commits.length && commits[i]!.offset < endOffset) i++;
    next.set(path, i);
    if (i === commits.length) throw new Error(`${path} was not stored up to byte ${endOffset}`);
    return commits[i]!.atMs - atMs;
  });
}
