import { markMatches } from '../records/highlight.js';

/** A text with the matches of `searchText` marked; none where it is empty. */
export function MarkedText({ text, searchText }: { readonly text: string; readonly searchText: string }) {
  if (searchText === '') return <>{text}</>;
  return (
    <>
      {markMatches(text, searchText).map(({ text: part, isMatch }, i) =>
        isMatch ? <mark key={i}>{part}</mark> : part,
      )}
    </>
  );
}
