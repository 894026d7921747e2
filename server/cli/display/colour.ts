import { Option } from 'commander';

/** The colours that records are shown in, by the numbers that terminals know them by. Each terminal has its own idea of how they look. */
const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Colour = keyof typeof codes;

/** A text in a colour, or as it is where there are none. */
export type Paint = (text: string, colour: Colour) => string;

const choices = ['auto', 'always', 'never'] as const;

export type ColourChoice = (typeof choices)[number];

/** `--color`, for the commands that have some. */
export function colourOption(): Option {
  return new Option('--color <when>', 'colours: auto, always or never')
    .choices([...choices])
    .default('auto' satisfies ColourChoice);
}

/**
 * Whether to use colours. What was typed wins, then `FORCE_COLOR`, then `NO_COLOR` (https://no-color.org: any value but an empty one); else
 * there are some on a terminal that knows them.
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

export const plain: Paint = (text) => text;

export const coloured: Paint = (text, colour) =>
  text === '' ? '' : `\u001b[${codes[colour]}m${text}\u001b[0m`;
