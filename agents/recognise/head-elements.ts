/** What may stand in a line's head: what is around it, what it looks like, and what it is called. */
export interface HeadElement {
  readonly name: string;
  readonly open: string;
  /** An expression of the value. */
  readonly value: string;
  readonly close: string;
  /** What has to follow it, which is not taken. */
  readonly end: string;
  /** Share of the lines that must have it. Where not all have it, it is one that lines may lack. */
  readonly shareMin: number;
  /** A name that comes again and again, which tells it from the first word of a message. */
  readonly isRepeated?: boolean;
}

/** Words for how grave a line is, in upper case. */
const levels =
  'TRACE|DEBUG|INFORMATION|INFO|NOTICE|NOTE|WARNING|WARN|ERROR|ERR|CRITICAL|CRIT|FATAL|ALERT|EMERGENCY|EMERG|PANIC|SEVERE|CONFIG|FINEST|FINER|' +
  'FINE|VERBOSE|SUCCESS|FAILURE|LOG|SYSTEM|DPANIC|INF|WRN|DBG|TRC|FTL|AUDIT';
const anyLevel = new RegExp(`^(?:${levels})$`, 'i');

/** Whether texts say how grave a line is. */
export function areLevels(texts: readonly string[]): boolean {
  return texts.length > 0 && texts.every((text) => anyLevel.test(text));
}

const anything = '.*';
/** Nothing that would be a part of the same word. */
const wordEnd = '(?:[^A-Za-z0-9_].*)?';
const numberEnd = '(?:[\\s:,|].*)?';
const blankEnd = '(?:\\s.*)?';

/** What brackets a level may stand in. */
const brackets: readonly (readonly [string, string])[] = [
  ['', ''],
  ['\\[ *', ' *\\]'],
  ['< *', ' *>'],
  ['\\( *', ' *\\)'],
];

const levelElements = brackets.flatMap(([open, close]): HeadElement[] => [
  { name: 'level', open, value: `(?i:${levels})`, close, end: wordEnd, shareMin: 0.5 },
]);

/** A level as it is matched in the end: what other lines may have as well, but no word of a message where a line may lack it. */
export function levelValue(texts: readonly string[], isInAll: boolean, isBracketed: boolean): string {
  if (isInAll || isBracketed) return '[A-Za-z]+';
  if (texts.every((text) => /^[A-Z]{3,11}$/.test(text))) return '[A-Z]{3,11}';
  return [...new Set(texts)].toSorted((a, b) => b.length - a.length).join('|');
}

const word = String.raw`[A-Za-z_][\w.$/@#&;<>()+~*:-]*`;
const wordWithoutColon = word.replace(':', '');
const dotted = String.raw`[A-Za-z_$][\w$]*(?:\.[\w$]+)+`;

/** The elements behind a time, in the order in which they are tried. */
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
  // Up to the one that ends it, with brackets inside perhaps.
  { name: 'bracket', open: '\\[', value: '.*?', close: '\\]', end: ' - .*', shareMin: 0.95 },
  { name: 'bracket', open: '\\[', value: '.*?', close: '\\]', end: ': .*', shareMin: 0.95 },
  { name: 'bracket', open: '\\[ *', value: '[^\\[\\]]*', close: '\\]', end: anything, shareMin: 0.5 },
  { name: 'bracket', open: '\\(', value: '[^()]+', close: '\\)', end: anything, shareMin: 0.95 },
  // Behind a time in brackets that close later.
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
  // A column that is filled with blanks.
  { name: 'logger', open: '', value: word, close: '', end: ' {2,}.*', shareMin: 0.95, isRepeated: true },
  { name: 'cell', open: '', value: '[^|]*?', close: '', end: ' *\\|.*', shareMin: 0.95 },
  { name: 'cell', open: '', value: '[^\\t]*', close: '', end: '\\t.*', shareMin: 0.95 },
];

/** What may stand between two parts, in the order in which it is tried. */
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
