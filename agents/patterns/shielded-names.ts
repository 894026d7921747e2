/**
 * Characters that glob libraries do not take as part of a name, and what stands for each while a library sees the name. A lone
 * surrogate is in no name, because names are read as UTF-8.
 */
const shields = new Map([
  ['\n', '\ud80a'],
  ['\r', '\ud80d'],
  ['\u2028', '\ud828'],
  ['\u2029', '\ud829'],
  ['\\', '\ud85c'],
]);

const shielded = new Map([...shields].map(([character, shield]) => [shield, character]));

/** Replaces the line ends in a name or pattern, which `**` would not match. */
export function withoutLineEnds(name: string): string {
  return name.replace(/[\n\r\u2028\u2029]/g, (character) => shields.get(character)!);
}

/** The same for the folder that is searched, in which a backslash would be taken for a slash. */
export function shieldedFolder(path: string): string {
  return withoutLineEnds(path).replaceAll('\\', shields.get('\\')!);
}

/** The name as it was. */
export function unshielded(name: string): string {
  return name.replace(/[\ud80a\ud80d\ud828\ud829\ud85c](?![\udc00-\udfff])/g, (shield) =>
    shielded.get(shield)!,
  );
}
