import { markMatches } from '../records/highlight.js';

/** A text with what was searched for in it marked; `sought` is empty for nothing. */
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
