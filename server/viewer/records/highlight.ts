/** A part of a text, and whether it matches the search. */
export interface TextPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** Maximum number of matches that are marked in a text. A search for one letter may match most of a long text. */
const matchesMax = 200;

/** Splits a text at the matches of a search, ignoring case. */
export function markMatches(text: string, needle: string): readonly TextPart[] {
  const folded = text.toLowerCase();
  const foldedNeedle = needle.toLowerCase();
  // Where case folding changes the length, offsets in the folded text are not valid in the original.
  if (foldedNeedle === '' || folded.length !== text.length) return [{ text, isMatch: false }];
  const parts: TextPart[] = [];
  let from = 0;
  while (parts.length < 2 * matchesMax) {
    const at = folded.indexOf(foldedNeedle, from);
    if (at < 0) break;
    if (at > from) parts.push({ text: text.slice(from, at), isMatch: false });
    parts.push({ text: text.slice(at, at + foldedNeedle.length), isMatch: true });
    from = at + foldedNeedle.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isMatch: false });
  return parts;
}
