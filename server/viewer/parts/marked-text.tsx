import { markMatches } from '../records/highlight.js';

/** A text with the matches of `sought` marked; none where it is empty. */
export function MarkedText({ text, sought }: { readonly text: string; readonly sought: string }) {
  if (sought === '') return <>{text}</>;
  return (
    <>
      {markMatches(text, sought).map(({ text: part, isMatch }, i) =>
        isMatch ? <mark key={i}>{part}</mark> : part,
      )}
    </>
  );
}
