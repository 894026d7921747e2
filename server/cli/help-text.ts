import { wrapToWidth } from './terminal.js';

/** Width of help texts in columns: that of the narrowest terminals in use. */
export const helpWidth = 80;

/** A line with an example of a command, and its explanation after two or more blanks. */
const example = /^( {2}\$ \S+(?: \S+)*)(?: {2,}(\S.*))?$/;

/** A line with a name, and its explanation after two or more blanks. */
const named = /^( +\S+(?: \S+)* {2,})(\S.*)$/;

/**
 * Fits a help text into `width` columns. Adjacent lines that are sentences form a paragraph and are wrapped together; adjacent examples
 * form a list.
 */
export function fitHelp(text: string, width: number = helpWidth): string {
  const fitted: string[] = [];
  let group: string[] = [];
  const end = (): void => {
    fitted.push(...fitGroup(group, width));
    group = [];
  };
  for (const line of text.split('\n')) {
    if (group.length > 0 && kindOf(line) !== kindOf(group[0]!)) end();
    group.push(line);
  }
  end();
  return fitted.join('\n');
}

function kindOf(line: string): 'example' | 'indented' | 'sentence' | 'blank' {
  if (line === '') return 'blank';
  if (line.startsWith('  $ ')) return 'example';
  return line.startsWith(' ') ? 'indented' : 'sentence';
}

function fitGroup(lines: readonly string[], width: number): readonly string[] {
  if (lines.every((line) => line.length <= width)) return lines;
  switch (kindOf(lines[0]!)) {
    case 'example':
      return fitExamples(lines, width);
    case 'indented':
      return lines.flatMap((line) => fitNamed(line, width));
    case 'sentence':
      return wrapToWidth(lines.join(' '), width);
    case 'blank':
      return lines;
  }
}

/** Puts the explanations of examples behind the commands where all of them fit, else below. */
function fitExamples(lines: readonly string[], width: number): string[] {
  const examples = lines.map((line) => {
    const [, command = line, comment = ''] = example.exec(line) ?? [];
    return { command, comment };
  });
  const widest = Math.max(...examples.map(({ command }) => command.length)) + 2;
  if (examples.every(({ comment }) => widest + comment.length <= width))
    return examples.map(({ command, comment }) => `${command.padEnd(widest)}${comment}`.trimEnd());
  return examples.flatMap(({ command, comment }) => {
    const below = comment === '' ? [] : wrapToWidth(comment, width - 6).map((line) => `      ${line}`);
    return [command, ...below];
  });
}

function fitNamed(line: string, width: number): string[] {
  const [, name, text] = named.exec(line) ?? [];
  if (name === undefined || text === undefined || line.length <= width) return [line];
  return wrapToWidth(text, width - name.length).map(
    (part, i) => `${i === 0 ? name : ' '.repeat(name.length)}${part}`,
  );
}
