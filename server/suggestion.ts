/** Names in an error message; more would hide the sentence. */
const namesShownMax = 50;

/** The longest name that is compared: the distance costs the product of both lengths. */
const comparedLengthMax = 100;

/**
 * The name nearest to `wrong` by edit distance (Levenshtein), or undefined when none is near enough to be what was meant:
 * at most a third of the longer name's letters may differ.
 */
export function nearestName(wrong: string, names: readonly string[]): string | undefined {
  if (wrong.length > comparedLengthMax) return undefined;
  let nearest: string | undefined;
  let nearestDistance = Infinity;
  for (const name of names) {
    if (name.length > comparedLengthMax) continue;
    const distance = editDistance(wrong.toLowerCase(), name.toLowerCase());
    if (distance < nearestDistance && distance <= Math.max(1, Math.max(wrong.length, name.length) / 3)) {
      nearest = name;
      nearestDistance = distance;
    }
  }
  return nearest;
}

/** ` Did you mean "x"?` with a leading blank, or nothing. */
export function didYouMean(wrong: string, names: readonly string[]): string {
  const nearest = nearestName(wrong, names);
  return nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
}

/** The names, separated by commas, in the order given; those beyond the first 50 only as a count. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, namesShownMax).join(', ');
  return names.length > namesShownMax ? `${shown} and ${names.length - namesShownMax} more` : shown;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(change, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}
