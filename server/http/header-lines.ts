/** Value of the header `name` (lowercase) in `lines`, a list of alternating names and values. Several values are joined by `, `. */
export function headerOf(lines: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const sent = lines[i]!;
    if (sent.length !== name.length || (sent !== name && sent.toLowerCase() !== name)) continue;
    value = value === undefined ? lines[i + 1]! : `${value}, ${lines[i + 1]!}`;
  }
  return value;
}
