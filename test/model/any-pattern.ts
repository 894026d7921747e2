import fc from 'fast-check';

const atoms = fc.constantFrom(
  ...[
    'a',
    'b',
    'c',
    '.',
    '[ab]',
    '[^a]',
    '\\w',
    '\\W',
    '\\d',
    '\\s',
    '^',
    '$',
    '\\b',
    '\\B',
    '\\A',
    '\\z',
    'é',
    '[à-ÿ]',
    '\\pL',
    ' ',
    '',
  ],
);

/** Random patterns in RE2 syntax, most of which match some texts of `patternText`. Each group has a name. */
export function anyPattern(atom: fc.Arbitrary<string> = atoms): fc.Arbitrary<string> {
  return fc
    .letrec<{ node: string; atom: string }>((tie) => ({
      atom,
      node: fc.oneof(
        { maxDepth: 5, withCrossShrink: true },
        tie('atom'),
        fc.tuple(tie('node'), tie('node')).map(([a, b]) => a + b),
        fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(?:${a}|${b})`),
        fc.tuple(tie('node'), tie('node'), tie('node')).map(([a, b, c]) => `${a}${b}${c}`),
        tie('node').map((a) => `(?P<NAME>${a})`),
        fc
          .tuple(tie('node'), fc.constantFrom('*', '+', '?', '*?', '+?', '??', '{2}', '{0,2}', '{1,}?'))
          .map(([a, quantifier]) => `(?:${a})${quantifier}`),
        fc
          .tuple(fc.constantFrom('i', 's', 'm', 'U', 'i-s', 'ms'), tie('node'))
          .map(([flags, a]) => `(?${flags}:${a})`),
      ),
    }))
    .node.map((text) => {
      let number = 0;
      return text.replaceAll('NAME', () => `g${number++}`);
    });
}

/** Texts of the characters that `anyPattern` distinguishes. */
export const patternText = fc.string({
  unit: fc.constantFrom('a', 'b', 'c', 'A', ' ', '1', '_', '\n', 'é', 'É', '🦊'),
  maxLength: 12,
});
