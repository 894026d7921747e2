/**
 * Converts a shell pattern to a regular expression that matches the same names: `app-*.log` to `app-.*\.log`. Undefined
 * where `pattern` may already be meant as a regular expression, because it repeats a class, a group or any character, or
 * where it has no `*` or `?`.
 */
export function expressionOfShellPattern(pattern: string): string | undefined {
  const repeats = /(^|[^\\])[*?]/.test(pattern);
  const hasExpression = /[\\.\])][*?+]|[[\](){}^$|+]|\\[^.]/.test(pattern);
  if (!repeats || hasExpression) return undefined;
  return pattern.replaceAll(/\\?\./g, '\\.').replaceAll('?', '.').replaceAll('*', '.*');
}
