/**
 * The expression that takes the names which `pattern` takes in a shell: `app-.*\.log` for `app-*.log`. Undefined where the pattern can be meant as the
 * expression that it is, because what it repeats is a class, a group or any character, or because it repeats nothing.
 */
export function expressionOfShellPattern(pattern: string): string | undefined {
  const repeats = /(^|[^\\])[*?]/.test(pattern);
  const hasExpression = /[\\.\])][*?+]|[[\](){}^$|+]|\\[^.]/.test(pattern);
  if (!repeats || hasExpression) return undefined;
  return pattern.replaceAll(/\\?\./g, '\\.').replaceAll('?', '.').replaceAll('*', '.*');
}
