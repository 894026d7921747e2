/** Characters that a terminal does not show as they are, and that commands print escaped. */
const controlCharacters = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** A path as one word of a shell command. One with control characters is written as `$'…'`, which bash, zsh and ksh read. */
export function shellPath(path: string): string {
  if (!controlCharacters.test(path)) return `'${path.replaceAll("'", `'\\''`)}'`;
  const characters = Array.from(path, (character) => {
    if (!controlCharacters.test(character)) return character.replace(/['\\]/, '\\$&');
    return Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  });
  return `$'${characters.join('')}'`;
}
