import { assertNever, lineBytesMax, LogstrataError } from '../../../engine/index.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { describeLine } from '../../../agents/decode/describe-line.js';
import type { DescribedField, LineDescription } from '../../../agents/decode/describe-line.js';
import { exitDone, exitFailed } from '../output/failure.js';
import type { Settings } from '../options/settings.js';
import { formatTable } from '../output/table.js';
import { printJson, printLines, screenWidth } from '../output/terminal.js';
import { printable } from '../output/text-width.js';
import { showValue } from './shown-value.js';

const indent = '  ';

function describeValue({ type, value, unreadable }: DescribedField): string {
  if (value === null && !unreadable) return 'null (not in the line)';
  return showValue(type, value);
}

function describeRecord(description: LineDescription & { outcome: 'record' }): string[] {
  const { fields, parsed } = description;
  const texts = parsed.map(({ name, text }) => [
    name,
    text === null ? '(did not match)' : printable(JSON.stringify(text)),
  ]);
  const unreadable = fields.filter((field) => field.unreadable);
  const screen = screenWidth();
  const width = screen === null ? null : screen - indent.length;
  return [
    'The line parses into',
    ...formatTable(['part', 'text'], texts, [], width).map((line) => indent + line),
    '',
    'and is stored as',
    ...formatTable(
      ['field', 'type', 'value'],
      fields.map((field) => [field.name, field.type, describeValue(field)]),
      [],
      width,
    ).map((line) => indent + line),
    ...unreadable.map(
      ({ name, type, text }) =>
        `note: ${name} can't be read as ${type === 'int' ? 'an int' : `a ${type}`}, so it is null. Its text is ${printable(JSON.stringify(text))}`,
    ),
  ];
}

/**
 * Prints what a line, or a record of several lines, would become. Uses the decoder of `load`. `-` reads the text from standard input.
 * Returns exit code 1 where the line would be rejected.
 */
export async function describeLineOf(
  agent: AgentDefinition,
  text: string,
  settings: Settings,
  asJson: boolean,
): Promise<number> {
  const line = text === '-' ? await readStandardInput() : text;
  const description = describeLine(agent, line, { timezone: settings.config.server.timezone, now: Date.now });
  const code = description.outcome === 'rejected' ? exitFailed : exitDone;
  if (asJson) {
    await printJson(description);
    return code;
  }
  await printLines(describe(description, agent));
  return code;
}

function describe(description: LineDescription, { file }: AgentDefinition): string[] {
  switch (description.outcome) {
    case 'record':
      return [...describeRecord(description), ...continuation(description)];
    case 'blank':
      return ['A blank line: it is skipped, neither stored nor rejected.'];
    case 'rejected':
      return [
        `The line would be rejected: ${description.reason}`,
        ...(file?.regex === undefined ? [] : [`The pattern is ${file.regex}`]),
        ...continuation(description),
      ];
    default:
      return assertNever(description);
  }
}

function continuation({ continues }: LineDescription): string[] {
  if (!continues) return [];
  return ['note: multiline.start does not match this line, so in a log it continues the record before it'];
}

/** Reads a line from standard input. Throws `limit` where it is longer than a line of a log may be. */
async function readStandardInput(): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > lineBytesMax + 2) {
      throw new LogstrataError('limit', `standard input has more than one line of ${lineBytesMax} bytes`);
    }
  }
  return Buffer.concat(pieces).toString('utf8');
}
