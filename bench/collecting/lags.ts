/** A commit: the time at which it was durable, and the offset up to which each of its files was stored, by path. */
export interface Committed {
  readonly atMs: number;
  readonly ends: readonly (readonly [path: string, offset: number])[];
}

/** A write of lines to a file: its time and the offset of its end. */
export interface Written {
  readonly atMs: number;
  readonly path: string;
  readonly endOffset: number;
}

/** The milliseconds from each write to the commit that stored its last line, in the order of the writes. Throws where a write was never stored. */
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
