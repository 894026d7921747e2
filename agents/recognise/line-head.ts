import { LinePattern } from '../definition/line-pattern.js';
import { type LineShape, type SampleLine, FieldNames, sampleLine, typeOfTexts } from './field-names.js';
import { findRareTime, findTime, type TimePlace } from './time-place.js';

/** A part that a line's head may have: the text around it, its expression, and its name. */
interface HeadElement {
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
/** A comma before a digit is that of a decimal. */
const numberEnd = '(?:[\\s:|].*|,[^0-9].*)?';
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
function levelValue(texts: readonly string[], isInAll: boolean, isBracketed: boolean): string {
  if (isInAll || isBracketed) return '[A-Za-z]+';
  if (texts.every((text) => /^[A-Z]{3,11}$/.test(text))) return '[A-Z]{3,11}';
  return [...new Set(texts)].toSorted((a, b) => b.length - a.length).join('|');
}

const word = String.raw`[A-Za-z_][\w.$/@#&;<>()+~*:-]*`;
const wordWithoutColon = word.replace(':', '');
const dotted = String.raw`[A-Za-z_$][\w$]*(?:\.[\w$]+)+`;

/** The elements after a time, in the order in which they are tried. */
const headElements: readonly HeadElement[] = [
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
  { name: 'number', open: '', value: '\\d+', close: '', end: numberEnd, shareMin: 0.95 },
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
const separators = [
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

/** Limit on the parts of a head; programs that write more use keys for them. */
const partsMax = 12;

/** Limit on the lines whose heads are compared. */
const linesComparedMax = 250;

/** How often an element may occur; elements that are not listed occur once. */
const timesMax: Readonly<Record<string, number>> = { pid: 2, number: 2, bracket: 4, cell: 6, word: 8 };

const closers: Readonly<Record<TimePlace['open'], string>> = {
  '': '',
  '[': ']',
  '(': ')',
  '<': '>',
  '"': '"',
};

/** Lines that continue a record: indented lines, lines of stack traces, closing brackets. */
const continuationShape = /^(?:\s|Caused by:|Traceback |at |\.\.\.|[)}\]]|--)/;

/** Lines about the file itself, which belong to no record. */
const commentShape = /^#[A-Za-z]/;

/**
 * Finds the pattern of lines that begin with a time, or have one after a few words, followed by parts such as a level, a
 * process id, a thread or a logger, and the message. Adds part after part while the lines have them in common. Undefined
 * where lines have neither a time nor a level.
 */
export function headShape(lines: readonly SampleLine[]): LineShape | undefined {
  const candidates = lines.filter(({ text }) => !continuationShape.test(text));
  const texts = candidates.map(({ text }) => text);
  const place = findTime(texts, 0.3) ?? findRareTime(texts);
  if (place === undefined)
    return new HeadComposer(sparse(candidates), '').compose('lines with a level', true);
  const words = wordsBefore(candidates, place);
  const head = `${words.regex}${timePart(candidates, words.regex, place)}`;
  const start = `^${head.replaceAll(/\?P<\w+>/g, '?:')}`;
  const pattern = new LinePattern(start);
  const starts = lines.filter(({ bytes }) => pattern.match(bytes, 0, bytes.length) === true);
  const others = lines.filter(({ text }) => !commentShape.test(text)).length - starts.length;
  const continued = lines.filter(({ text }) => continuationShape.test(text)).length;
  const isMultiline = others > 0 && (continued >= others / 3 || others > lines.length / 20);
  const shape = shapeOfStarts(starts, head);
  if (shape === undefined || !isMultiline) return shape;
  // The message may begin on the second line, or the head may stand alone.
  const regex = shape.regex
    .replace(/(?:\\s[+*]| \+?)(\(\?P<message>)/, '\\s*$1')
    .replace(/\\s\*\$$/, '\\s*(?P<message>.*)$$');
  return { ...shape, regex: `(?s)${regex}`, start };
}

/** Limit on the rounds that also consider lines which the shape so far does not match. */
const roundsMax = 3;

/** Limit on the lines that a round adds: so few that they do not count as usual. */
const oddLinesMax = 10;

/** The shape of lines that begin with `head`: first of the usual lines, then also of those that differ. */
function shapeOfStarts(starts: readonly SampleLine[], head: string): LineShape | undefined {
  let compared = sparse(starts);
  for (let round = 1; ; round++) {
    const shape = new HeadComposer(compared, head).compose('lines that begin with a time', false);
    if (shape === undefined || round === roundsMax) return shape;
    const pattern = new LinePattern(shape.regex);
    const odd = starts.filter(({ bytes }) => pattern.match(bytes, 0, bytes.length) !== true);
    if (odd.length === 0) return shape;
    compared = [...compared, ...odd.slice(0, oddLinesMax)];
  }
}

function sparse(lines: readonly SampleLine[]): SampleLine[] {
  const step = Math.max(1, Math.ceil(lines.length / linesComparedMax));
  return lines.filter((_line, i) => i % step === 0);
}

/** The expression of the words before a time. */
function wordsBefore(
  lines: readonly SampleLine[],
  { words, open, spelling }: TimePlace,
): { readonly regex: string } {
  const names = new FieldNames();
  let regex = '';
  for (let i = 0; i < words; i++) {
    const behind = `(?:\\S+[ \\t]+){${words - i - 1}}${escapedBrackets(open)}${spelling.shape}`;
    const texts = partTexts(`^${regex}(?P<next>\\S+)[ \\t]+${behind}`, lines).texts.get('next')!;
    const isBracketed = texts.every((text) => /^\[[^\]]*\]$/.test(text));
    const inside = isBracketed ? texts.map((text) => text.slice(1, -1)) : texts;
    const name = names.take(nameOfPart(isBracketed ? 'bracket' : 'word', inside));
    regex += isBracketed ? `\\[(?P<${name}>[^\\]\\s]*)\\] +` : `(?P<${name}>\\S+) +`;
  }
  return { regex };
}

/** The expression of a time, with the brackets that most lines have around it. */
function timePart(lines: readonly SampleLine[], before: string, { open, spelling }: TimePlace): string {
  const time = `${escapedBrackets(open)}(?P<time>${spelling.shape})`;
  const closed = `${time}${escapedBrackets(closers[open])}`;
  const all = partTexts(`^${before}${time}`, lines).lines;
  return partTexts(`^${before}${closed}`, lines).lines > all / 2 ? closed : time;
}

function escapedBrackets(text: string): string {
  return text.replaceAll(/[[\]()]/g, '\\$&');
}

/** Composes a head from its parts. */
class HeadComposer {
  private readonly names = new FieldNames();
  private readonly counts = new Map<string, number>();
  private parts = 0;
  /** Number of parts that are ids of a process or thread. */
  private processes = 0;
  /** The rest of each line after the head. */
  private rests: readonly SampleLine[];

  constructor(
    lines: readonly SampleLine[],
    private regex: string,
  ) {
    const { texts } = partTexts(`^${regex}(?P<rest_of_line>.*)$`, lines);
    this.rests = texts.get('rest_of_line')!.map(sampleLine);
    for (const name of texts.keys()) this.names.take(name);
    this.names.take('message');
    if (texts.has('level')) this.counts.set('level', 1);
  }

  compose(title: string, needsPart: boolean): LineShape | undefined {
    if (this.rests.length === 0) return undefined;
    this.takeMilliseconds();
    while (this.parts < partsMax && this.takePart()) this.parts++;
    if (needsPart && this.counts.get('level') !== 1) return undefined;
    return { title, regex: `^${this.regex}${this.messagePart()}` };
  }

  /** Some programs write milliseconds after a colon, which no time format has. */
  private takeMilliseconds(): void {
    if (this.regex === '') return;
    this.accept(':(?P<time_ms>\\d{1,3})', '(?:[^0-9].*)?', 1);
  }

  private takePart(): boolean {
    const fitting = this.separatorsThatFit();
    for (const separator of fitting) {
      if (separator !== '' && (this.takeSecondTime(separator) || this.takeProgram(separator))) return true;
      for (const element of headElements) {
        // Without a separator, only a bracket separates two parts.
        const isApart = separator !== '' || element.open !== '' || this.regex === '';
        if (isApart && this.takeElement(separator, element)) return true;
      }
    }
    return fitting.some((separator) => separator !== '' && this.takeWord(separator));
  }

  private separatorsThatFit(): string[] {
    const fitting = separators.filter(
      (separator) => this.count(`^${separator}(?:[^ \\t].*)?$`) === this.rests.length,
    );
    if (fitting.length > 0) return fitting;
    return [' ', ' +', ': ', ' - '].filter(
      (separator) => this.count(`^${separator}[^ \\t].*$`) > this.rests.length * 0.7,
    );
  }

  private count(regex: string): number {
    return partTexts(regex, this.rests).lines;
  }

  private takeElement(separator: string, element: HeadElement): boolean {
    const { name, open, value, close, end, shareMin, isRepeated } = element;
    if ((this.counts.get(name) ?? 0) >= (timesMax[name] ?? 1)) return false;
    const texts = this.textsOf(`${separator}${open}(?P<value>${value})${close}`, end);
    if (texts.length === 0 || texts.length < this.rests.length * shareMin) return false;
    if (texts.every((text) => text === '')) return false;
    if (isRepeated === true && new Set(texts).size > Math.max(5, texts.length * 0.6)) return false;
    const isInAll = texts.length === this.rests.length;
    const isWord = name === 'level' && texts.some((text) => text.length > 1);
    const taken = isWord ? levelValue(texts, isInAll, open !== '') : value;
    const known = this.names.take(this.nameFor(name, texts, separator));
    return this.accept(`${separator}${open}(?P<${known}>${taken})${close}`, end, shareMin, name);
  }

  private nameFor(name: string, texts: readonly string[], separator: string): string {
    const isProcess = name === 'pid' || (name === 'number' && this.standsForProcess(texts, separator));
    // Zap writes the name of its logger behind the level and a tab.
    const isZap = name === 'cell' && separator === '\\t' && this.counts.get('level') === 1;
    if (isZap && texts.every((text) => /^\w+$/.test(text))) return 'logger';
    if (!isProcess) return nameOfPart(name, texts);
    if (areSmallIds(texts)) return 'thread';
    this.processes++;
    return this.processes === 1 ? 'pid' : 'tid';
  }

  /**
   * Whether bare numbers are ids of processes: they stand between blanks and right before a level, before another number and a
   * level, or before dashes, as logcat, oslo and Spring write them; and they repeat.
   */
  private standsForProcess(texts: readonly string[], separator: string): boolean {
    if (!/^(?: |\\s)\+?$/.test(separator)) return false;
    if (texts.some((text) => Number(text) < 1 || Number(text) > processIdMax)) return false;
    if (texts.length > 20 && new Set(texts).size > texts.length * 0.6) return false;
    const behind = `(?:\\d+ +)?(?:(?:(?i:${levels})|[DIWEFV])[^A-Za-z0-9_]|---).*`;
    return this.count(`^${separator}\\d+ +${behind}$`) >= this.rests.length * 0.9;
  }

  private textsOf(part: string, end: string): readonly string[] {
    return partTexts(`^${part}${end}$`, this.rests).texts.get('value')!;
  }

  /** Takes a second time, possibly after some words. */
  private takeSecondTime(separator: string): boolean {
    const pattern = new RegExp(`^${separator}`);
    const place = findTime(
      this.rests.map(({ text }) => text.replace(pattern, '')),
      0.95,
    );
    if (place === undefined || place.spelling.shape.length < 20) return false;
    // A Unix time may be followed by a readable date, after words; in other lines, a time after words belongs to the message.
    if (place.words > 0) return this.regex.includes('(?P<time>(?:9') && this.takeAnyWord(separator);
    const name = this.names.take('time_2');
    const { open, spelling } = place;
    const part = `${separator}${escapedBrackets(open)}(?P<${name}>${spelling.shape})${escapedBrackets(closers[open])}`;
    return this.accept(part, '.*', 0.95, 'time');
  }

  /** Takes the host and program of syslog, which follow the time. */
  private takeProgram(separator: string): boolean {
    if (this.parts === 0 || !/\(\?P<time(?:_2)?>\[A-Z\]\[a-z\]\{2\} \[ [^>]*$/.test(this.regex)) return false;
    const program = String.raw`(?P<program>[^:\[\s]+)(?:\[(?P<pid>\d+)\])?:`;
    if (this.counts.has('program')) return false;
    return this.accept(`${separator}(?P<host>\\S+) ${program}`, '.*', 0.5, 'program');
  }

  /** Takes a word, where all lines have a level after some words. */
  private takeWord(separator: string): boolean {
    if (this.counts.has('level')) return false;
    const level =
      '(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|FAILURE|CRITICAL)(?:[^A-Za-z0-9_].*)?';
    for (let words = 1; words <= 7; words++) {
      const found = this.count(`^${separator}(?:\\S+ +){${words}}${level}$`);
      if (found >= this.rests.length * 0.97) return this.takeAnyWord(separator);
    }
    return false;
  }

  private takeAnyWord(separator: string): boolean {
    const texts = this.textsOf(`${separator}(?P<value>\\S+)`, '(?:[ \\t].*)?');
    const name = this.names.take(nameOfPart('word', texts));
    return this.accept(`${separator}(?P<${name}>\\S+)`, '(?:[ \\t].*)?', 0.9, 'word');
  }

  /** Takes a part if at least `shareMin` of the lines have it. It is optional unless all have it. */
  private accept(part: string, end: string, shareMin: number, name?: string): boolean {
    const pattern = new LinePattern(`^${part}(?P<rest_of_line>${end})$`);
    const at = pattern.groupNames.indexOf('rest_of_line');
    let found = 0;
    const rests = this.rests.map((rest) => {
      const { bytes } = rest;
      if (pattern.match(bytes, 0, bytes.length) !== true) return rest;
      found++;
      return sampleLine(bytes.subarray(pattern.captures[2 * at]!).toString());
    });
    if (found === 0 || found < this.rests.length * shareMin) return false;
    this.regex += found === this.rests.length ? part : `(?:${part})?`;
    this.rests = rests;
    if (name !== undefined) this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return true;
  }

  /** The expression of the rest of the line, after its separator. */
  private messagePart(): string {
    if (this.rests.every(({ text }) => text.trim() === '')) return '\\s*$';
    const separator = this.separatorsThatFit()[0];
    if (separator === undefined || this.count(`^(?:${separator}(?s:.*))?$`) < this.rests.length)
      return '\\s*(?P<message>.*)$';
    return separator === '' ? '(?P<message>.*)$' : `(?:${separator}(?P<message>.*))?$`;
  }
}

const dottedName = /^[A-Za-z_$][\w$]*(?:[./][\w$]+)+$/;
const idShape = /^(?:req[-_]|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{16,}$)/i;

const fileShape = /\.log(?:\.|$)/;
/** The largest id of a process on Linux. */
const processIdMax = 4_194_304;

/** Whether numbers in brackets are rather those of threads, of which a process has many small ones. */
function areSmallIds(texts: readonly string[]): boolean {
  return new Set(texts).size > 2 && texts.every((text) => Number(text) < 1000);
}

const threadShape = /thread|main|exec|pool|worker|nio|http|-\d+$|^\d+$/i;

/** Names a part by its texts. */
function nameOfPart(name: string, texts: readonly string[]): string {
  if (name !== 'bracket' && name !== 'cell' && name !== 'word') return name;
  if (areLevels(texts)) return 'level';
  if (texts.every((text) => idShape.test(text))) return 'request_id';
  if (texts.every((text) => dottedName.test(text) && !fileShape.test(text))) return 'logger';
  if (texts.every((text) => fileShape.test(text))) return 'file';
  const isNumber = typeOfTexts(texts) === 'int';
  if (name === 'bracket')
    return isNumber
      ? areSmallIds(texts)
        ? 'thread'
        : 'pid'
      : texts.some((text) => threadShape.test(text))
        ? 'thread'
        : 'context';
  if (isNumber) return 'number';
  return name;
}

/** The texts of an expression's named groups in lines. */
export interface PartTexts {
  /** Number of lines that the expression matches. */
  readonly lines: number;
  /** For each group, its texts in the lines where it took part. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
}

/** Matches lines with an expression and collects the texts of its groups. */
export function partTexts(regex: string, lines: readonly SampleLine[]): PartTexts {
  const pattern = new LinePattern(regex);
  const { groupNames } = pattern;
  const texts = groupNames.map((): string[] => []);
  let matched = 0;
  for (const { bytes } of lines) {
    if (pattern.match(bytes, 0, bytes.length) !== true) continue;
    matched++;
    const { captures } = pattern;
    groupNames.forEach((_name, i) => {
      const from = captures[2 * i]!;
      if (from >= 0) texts[i]!.push(bytes.toString('utf8', from, captures[2 * i + 1]!));
    });
  }
  return { lines: matched, texts: new Map(groupNames.map((name, i) => [name, texts[i]!])) };
}

/** Joins lines into records by an expression that matches the first line of a record. Without one, each line is a record. */
export function recordsOf(lines: readonly SampleLine[], start: string | undefined): readonly SampleLine[] {
  if (start === undefined) return lines;
  const pattern = new LinePattern(start);
  const records: string[][] = [];
  for (const { text, bytes } of lines) {
    const begins = records.length === 0 || pattern.match(bytes, 0, bytes.length) === true;
    if (begins) records.push([text]);
    else records.at(-1)!.push(text);
  }
  return records.map((texts) => sampleLine(texts.join('\n')));
}
