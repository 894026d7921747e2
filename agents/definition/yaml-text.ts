/** Texts that need no quotes in YAML and are not read as another type. */
const plainText = /^(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z][a-z0-9_]*$/i;

/** Writes a text as YAML. JSON strings are valid YAML too. */
export function yamlText(text: string): string {
  if (plainText.test(text)) return text;
  return /[\p{Cc}\u2028\u2029\ufeff]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}
