/** Longer words are not checked, because the comparison takes time proportional to the product of the lengths. */
const lengthMax = 64;

/** ` (did you mean "x"?)`, with a leading blank, for the name most similar to `wrong`; empty if none is similar enough. */
export function nearName(wrong: string, names: readonly string[]): string {
  if (wrong.length > lengthMax) return '';
  let nearest: string | undefined;
  let nearestEdits = Math.max(1, Math.floor(wrong.length / 3)) + 1;
  for (const name of names) {
    const edits = editsBetween(wrong.toLowerCase(), name.toLowerCase());
    if (edits >= nearestEdits) continue;
    nearest = name;
    nearestEdits = edits;
  }
  return nearest === undefined ? '' : ` (did you mean "${nearest}"?)`;
}

/** The optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`. */
function editsBetween(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let edits = Math.min(change, rows[i - 1]![j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, rows[i - 2]![j - 2]! + 1);
      row.push(edits);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
