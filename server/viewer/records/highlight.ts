/** A part of a text, and whether it is what was searched for. */
export interface TextPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** Matches that are marked in one text; a single letter may be all of a long one. */
const matchesMax = 200;

/** Takes a text apart at what was searched for, upper and lower case being the same. */
export function markMatches(text: string, needle: string): readonly TextPart[] {
  const folded = text.toLowerCase();
  const sought = needle.toLowerCase();
  // Where folding changes the length, places in the one are not places in the other.
  if (sought === '' || folded.length !== text.length) return [{ text, isMatch: false }];
  const parts: TextPart[] = [];
  let from = 0;
  while (parts.length < 2 * matchesMax) {
    const at = folded.indexOf(sought, from);
    if (at < 0) break;
    if (at > from) parts.push({ text: text.slice(from, at), isMatch: false });
    parts.push({ text: text.slice(at, at + sought.length), isMatch: true });
    from = at + sought.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isMatch: false });
  return parts;
}
