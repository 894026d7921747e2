import { Option } from 'commander';

/** The ANSI codes (SGR) of the colours that records are shown in. How they look depends on the terminal. */
const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Colour = keyof typeof codes;

/** Colours a text, or returns it unchanged where colours are off. */
export type Paint = (text: string, colour: Colour) => string;

const choices = ['auto', 'always', 'never'] as const;

export type ColourChoice = (typeof choices)[number];

/** The option `--color` of the commands that show records. */
export function colourOption(): Option {
  return new Option('--color <when>', 'colours: auto, always or never')
    .choices([...choices])
    .default('auto' satisfies ColourChoice);
}

/**
 * Whether to use colours. The option wins, then `FORCE_COLOR`, then `NO_COLOR` (https://no-color.org: any value but the empty one). Without
 * these, colours are used on a terminal that has them.
 */
export function hasColours(
  choice: ColourChoice,
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  if (choice !== 'auto') return choice === 'always';
  const { FORCE_COLOR: forced = '', NO_COLOR: refused = '', TERM: terminal } = environment;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return refused === '' && isTerminal && terminal !== 'dumb';
}

/** Leaves a text as it is. */
export const plain: Paint = (text) => text;

/** Colours a text with ANSI codes. */
export const coloured: Paint = (text, colour) =>
  text === '' ? '' : `\u001b[${codes[colour]}m${text}\u001b[0m`;
