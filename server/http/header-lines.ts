/** Value of the header `name`, which is in lowercase, in `lines`: names and values by turns. Several lines of it are joined by `, `. */
export function headerOf(lines: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const sent = lines[i]!;
    if (sent.length !== name.length || (sent !== name && sent.toLowerCase() !== name)) continue;
    value = value === undefined ? lines[i + 1]! : `${value}, ${lines[i + 1]!}`;
  }
  return value;
}
