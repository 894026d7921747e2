/** What YAML takes as it is, and for nothing but a text. */
const plainText = /^(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z][a-z0-9_]*$/i;

/** A text as YAML has it: JSON is YAML, too. */
export function yamlText(text: string): string {
  if (plainText.test(text)) return text;
  return /[\p{Cc}\u2028\u2029\ufeff]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}
