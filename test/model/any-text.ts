import fc from 'fast-check';

/** Any character that UTF-8 can encode. Unlike the unit `binary` of fast-check, it is made without a table of all million characters. */
export const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));

/** A text of any characters; `maxLength` counts characters. */
export function anyText(lengths: { readonly maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ unit: anyCharacter, ...lengths });
}
