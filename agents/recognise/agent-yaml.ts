import { yamlText } from '../definition/yaml-text.js';
import type { Candidate, CandidateField } from './candidate.js';

/** The parts of an agent's file other than the candidate. */
export interface AgentText {
  /** `file.path`: a folder and an expression for names. */
  readonly path: string;
  /** Comment lines for the beginning of the file. */
  readonly comments: readonly string[];
}

/** Writes a candidate as the text of an agent's file. */
export function agentYaml(
  { format, regex, start, fields }: Candidate,
  { path, comments }: AgentText,
): string {
  const lines = [
    ...comments.map((comment) => `# ${comment}`.trimEnd()),
    'fields:',
    ...fields.flatMap(fieldLines),
    '',
    'file:',
    `  path: ${quoted(path)}`,
    `  format: ${format}`,
    ...(regex === undefined ? [] : [`  regex: ${quoted(regex)}`]),
    ...(start === undefined
      ? []
      : ['  # A record begins at each line that this matches; other lines continue it.', '  multiline:']),
    ...(start === undefined ? [] : [`    start: ${quoted(start)}`]),
    '',
    '# Records are kept for ever unless a period is set:',
    '# retention: { period: 90d }',
  ];
  return `${lines.join('\n')}\n`;
}

function fieldLines({ name, type, source, timestamp, template, otherOrder }: CandidateField): string[] {
  const zone = timestamp?.timezone === undefined ? '' : `, timezone: ${yamlText(timestamp.timezone)}`;
  return [
    `  - name: ${yamlText(name)}`,
    ...(type === 'string' || timestamp !== undefined ? [] : [`    type: ${type}`]),
    ...(source === undefined || source === name ? [] : [`    source: ${yamlText(source)}`]),
    ...(template === undefined ? [] : [`    template: ${quoted(template)}`]),
    ...(otherOrder === undefined
      ? []
      : [`    # The dates of the log can also be read with day and month exchanged: ${quoted(otherOrder)}.`]),
    ...(timestamp === undefined ? [] : [`    timestamp: { format: ${formatText(timestamp.format)}${zone} }`]),
  ];
}

function formatText(format: string): string {
  return /^[a-z][a-z0-9]*$/.test(format) ? format : quoted(format);
}

/** Expressions and templates are easiest to read in single quotes, which can't contain control characters. */
function quoted(text: string): string {
  return /\p{Cc}/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}
