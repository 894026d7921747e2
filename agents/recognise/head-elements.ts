/** A part that a line's head may have: the text around it, its expression, and its name. */
export interface HeadElement {
  readonly name: string;
  readonly open: string;
  /** Expression of the value. */
  readonly value: string;
  readonly close: string;
  /** Expression of what must follow it, which is not taken. */
  readonly end: string;
  /** Minimum share of the lines that have it. Where not all have it, it becomes optional. */
  readonly shareMin: number;
  /** Whether its values must repeat in the log, which distinguishes it from the first word of a message. */
  readonly isRepeated?: boolean;
}

/** Names of levels, in upper case. */
const levels =
  'TRACE|DEBUG|INFORMATION|INFO|NOTICE|NOTE|WARNING|WARN|ERROR|ERR|CRITICAL|CRIT|FATAL|ALERT|EMERGENCY|EMERG|PANIC|SEVERE|CONFIG|FINEST|FINER|' +
  'FINE|VERBOSE|SUCCESS|FAILURE|LOG|SYSTEM|DPANIC|INF|WRN|DBG|TRC|FTL|AUDIT';
const anyLevel = new RegExp(`^(?:${levels})$`, 'i');

/** Whether all texts are names of levels. */
export function areLevels(texts: readonly string[]): boolean {
  return texts.length > 0 && texts.every((text) => anyLevel.test(text));
}

const anything = '.*';
/** What may follow a word: nothing that would be part of it. */
const wordEnd = '(?:[^A-Za-z0-9_].*)?';
const numberEnd = '(?:[\\s:,|].*)?';
const blankEnd = '(?:\\s.*)?';

/** Brackets that may enclose a level. */
const brackets: readonly (readonly [string, string])[] = [
  ['', ''],
  ['\\[ *', ' *\\]'],
  ['< *', ' *>'],
  ['\\( *', ' *\\)'],
];

const levelElements = brackets.flatMap(([open, close]): HeadElement[] => [
  { name: 'level', open, value: `(?i:${levels})`, close, end: wordEnd, shareMin: 0.5 },
]);

/**
 * The expression of a level in the final pattern: it also matches levels that the sample lacks, but no word of a message
 * where a line may lack the level.
 */
export function levelValue(texts: readonly string[], isInAll: boolean, isBracketed: boolean): string {
  if (isInAll || isBracketed) return '[A-Za-z]+';
  if (texts.every((text) => /^[A-Z]{3,11}$/.test(text))) return '[A-Z]{3,11}';
  return [...new Set(texts)].toSorted((a, b) => b.length - a.length).join('|');
}

const word = String.raw`[A-Za-z_][\w.$/@#&;<>()+~*:-]*`;
const wordWithoutColon = word.replace(':', '');
const dotted = String.raw`[A-Za-z_$][\w$]*(?:\.[\w$]+)+`;

/** The elements after a time, in the order in which they are tried. */
export const headElements: readonly HeadElement[] = [
  ...levelElements,
  { name: 'level', open: '', value: '[DIWEFVTCN]', close: '', end: wordEnd, shareMin: 0.95 },
  { name: 'pid', open: '\\[(?:pid[ :=])?', value: '\\d+', close: '\\]', end: anything, shareMin: 0.5 },
  { name: 'pid', open: '\\(', value: '\\d+', close: '\\)', end: anything, shareMin: 0.9 },
  { name: 'pid', open: '#', value: '\\d+', close: '', end: wordEnd, shareMin: 0.95 },
  {
    name: 'caller',
    open: '',
    value: String.raw`[\w./@+-]+\.[A-Za-z]+:\d+`,
    close: '',
    end: wordEnd,
    shareMin: 0.7,
  },
  // Up to the bracket that ends the part; there may be brackets inside.
  { name: 'bracket', open: '\\[', value: '.*?', close: '\\]', end: ' - .*', shareMin: 0.95 },
  { name: 'bracket', open: '\\[', value: '.*?', close: '\\]', end: ': .*', shareMin: 0.95 },
  { name: 'bracket', open: '\\[ *', value: '[^\\[\\]]*', close: '\\]', end: anything, shareMin: 0.5 },
  { name: 'bracket', open: '\\(', value: '[^()]+', close: '\\)', end: anything, shareMin: 0.95 },
  // Inside brackets that also enclose the time before it.
  { name: 'process', open: '', value: '[^\\[\\]\\s]+', close: '\\]', end: anything, shareMin: 0.95 },
  { name: 'pid', open: '', value: '\\d+', close: '', end: numberEnd, shareMin: 0.95 },
  { name: 'logger', open: '', value: word, close: '', end: ' +-\\s.*', shareMin: 0.7, isRepeated: true },
  {
    name: 'logger',
    open: '',
    value: wordWithoutColon,
    close: ' *:',
    end: blankEnd,
    shareMin: 0.7,
    isRepeated: true,
  },
  {
    name: 'logger',
    open: '',
    value: '[A-Za-z][^\\s:|]*(?: [^\\s:|]+)?',
    close: ' *:',
    end: blankEnd,
    shareMin: 0.95,
    isRepeated: true,
  },
  { name: 'logger', open: '', value: dotted, close: '', end: blankEnd, shareMin: 0.9, isRepeated: true },
  // A column that is padded with blanks.
  { name: 'logger', open: '', value: word, close: '', end: ' {2,}.*', shareMin: 0.95, isRepeated: true },
  { name: 'cell', open: '', value: '[^|]*?', close: '', end: ' *\\|.*', shareMin: 0.95 },
  { name: 'cell', open: '', value: '[^\\t]*', close: '', end: '\\t.*', shareMin: 0.95 },
];

/** Separators between two parts, in the order in which they are tried. */
export const separators = [
  ' - ',
  ' \\| ',
  ' --- ',
  ': ',
  ', ',
  ': +',
  ' +-+ +',
  ' *: +',
  '; *',
  '\\t',
  ' ',
  ' +',
  ' *\\| *',
  '\\s+',
  '/',
  ',',
  ':',
  '',
] as const;
