import type { CountedBucket, Counts, NumberAnswers } from '../../engine/index.js';
import { numberCells, numberTitles } from '../http/count-numbers.js';
import {
  countCsv,
  countIn,
  countJson,
  countProblem,
  parseCountRequest,
  valueText,
  type CountRequest,
} from '../http/count-request.js';
import { offsetText, wallClock } from '../http/time-step.js';
import { rawQueryOf, type GlobalFlags, type QueryBounds, type Settings } from './options.js';
import type { FilterContext } from '../http/parameters.js';
import { never, parseSeveralCount } from '../http/several-request.js';
import { askAgents, describeStats, predicatesWithin, type Asked } from './query.js';
import type { StopSignals } from './stoppable.js';
import {
  cutToWidth,
  formatCount,
  formatCounted,
  formatNumber,
  linesOf,
  padEndToWidth,
  padStartToWidth,
  printable,
  printLines,
  screenWidth,
  tell,
  textWidth,
  writeRecords,
} from './terminal.js';

/** The output that a count is shown on. */
export interface Screen {
  /** Columns of the terminal. Null where the output is not a terminal: then nothing is cut, there are no bars, and numbers have no separators. */
  readonly width: number | null;
  /** Whether bars are drawn with block characters, in eighths of a column; else with `#`. */
  readonly hasBlocks: boolean;
}

const gap = '  ';
/** A longer name than this part of the width is cut, to leave room for bars. */
const namePart = 0.6;
const barWidthMin = 8;
/** Columns that are left for bars beside the columns of a count by time. */
const barWidthKept = 16;
/** Maximum width of the columns of values in a count by time. */
const valueWidthMax = 16;
const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A line of a count: a name, the count, which the bar shows, and further cells. */
interface Line {
  readonly name: string;
  readonly count: number;
  readonly cells: readonly string[];
}

/** A count as lines for people: with bars on a terminal, else as aligned columns. */
export function describeCounts(request: CountRequest, counts: Counts, screen: Screen): string[] {
  if (request.time !== undefined && counts.time !== undefined) return timeLines(request, counts, screen);
  if (request.value !== undefined && counts.values !== undefined) return valueLines(request, counts, screen);
  const total = screen.width === null ? String(counts.count) : formatCounted(counts.count, 'record');
  const cells = cellsOf(request, counts.numbers, screen);
  const titles = titlesOf(request);
  const width = Math.max(...titles.map(textWidth));
  return [total, ...titles.map((title, i) => `${padEndToWidth(title, width)}${gap}${cells[i]!}`)];
}

function titlesOf({ numbers }: CountRequest): string[] {
  return numbers === undefined ? [] : numberTitles(numbers);
}

/** Numbers as cells: in full where programs read them; on a terminal times as such, and others with at most six digits that differ from 0. */
function cellsOf(
  { numbers, time }: CountRequest,
  answers: NumberAnswers | undefined,
  screen: Screen,
): string[] {
  if (numbers === undefined || answers === undefined) return [];
  if (screen.width === null) return numberCells(answers).map((cell) => (cell === '' ? '-' : cell));
  return numbers.fields.flatMap((field, i) =>
    numbers.functions.map((fn, k) => {
      const value = answers[i]![k] ?? null;
      if (value === null) return '-';
      const isTime = field.type === 'time' && fn !== 'sum' && fn !== 'distinct';
      const shown = isTime ? wallClock(Math.round(Number(value)), time?.zone ?? 'UTC') : undefined;
      return shown ?? (typeof value === 'bigint' ? formatCount(value) : formatNumber(value));
    }),
  );
}

function valueLines(request: CountRequest, { count, values }: Counts, screen: Screen): string[] {
  const { top, other, nulls, distinct } = values!;
  const lines = top.map((one): Line => ({
    name: printable(valueText(one.value)),
    count: one.count,
    cells: cellsOf(request, one.numbers, screen),
  }));
  const rest = linesOf(
    other > 0 && `${formatCount(other)} with one of ${formatCounted(distinct - top.length, 'other value')}`,
    nulls > 0 && `${formatCount(nulls)} with none`,
  );
  const header = [request.value!.field.name, 'count', ...titlesOf(request)];
  return [...table(header, lines, screen), ...summary(count, rest, screen)];
}

function timeLines(
  request: CountRequest,
  { count, time: counted, values }: Counts,
  screen: Screen,
): string[] {
  const { time, value } = request;
  const format = formatOf(screen);
  const { buckets, nulls } = counted!;
  const { zone, field } = time!;
  const names = timeNames(buckets, zone);
  const top = values?.top ?? [];
  const lines: (Line | null)[] = [];
  buckets.forEach((bucket, i) => {
    // Empty buckets have no line; a gap is marked, so that people see it.
    if (screen.width !== null && i > 0 && buckets[i - 1]!.until !== bucket.from) lines.push(null);
    const ofValues = (bucket.values ?? []).flatMap((cell, k) => [
      format(cell),
      ...cellsOf(request, bucket.numbersOfValues?.[k], screen),
    ]);
    const cells = [...cellsOf(request, bucket.numbers, screen), ...ofValues];
    lines.push({ name: names[i]!, count: bucket.count, cells });
  });
  const titles = titlesOf(request);
  const shown = top.flatMap((one) => [printable(valueText(one.value)), ...titles]);
  const header = [`${field.name} (${zone})`, 'count', ...titles, ...shown];
  const others = value === undefined ? undefined : values!;
  const rest = linesOf(
    nulls > 0 && `${formatCount(nulls)} without a time`,
    others && others.other > 0 && `${formatCount(others.other)} with another ${value!.field.name}`,
    others && others.nulls > 0 && `${formatCount(others.nulls)} without one`,
  );
  return [...table(header, lines, screen), ...summary(count, rest, screen)];
}

function summary(count: number, rest: readonly string[], { width }: Screen): string[] {
  if (width === null) return [];
  return ['', [formatCounted(count, 'record'), ...rest].join(', ')];
}

/** A table of names and numbers, with bars where there is room. A null line is shown as `…` and marks a gap. */
function table(header: readonly string[], lines: readonly (Line | null)[], screen: Screen): string[] {
  const { width } = screen;
  const format = formatOf(screen);
  const known = lines.filter((line) => line !== null);
  const titles = header.map((title, i) =>
    width === null || i === 0 ? title : cutToWidth(title, valueWidthMax),
  );
  const nameMost = width === null ? Infinity : Math.max(16, Math.floor(width * namePart));
  const names = known.map(({ name }) => cutToWidth(name, nameMost));
  const widths = titles.map((title, i) =>
    Math.max(
      textWidth(title),
      ...(i === 0 ? names : known.map((line) => cellsOfLine(line, format)[i - 1]!)).map(textWidth),
    ),
  );
  const columns = width === null ? widths.length : fittingColumns(widths, width - gap.length - barWidthKept);
  const used = widths.slice(0, columns).reduce((sum, each) => sum + each + gap.length, 0);
  const barWidth = width === null ? 0 : width - used;
  const most = Math.max(1, ...known.map((line) => line.count));
  const row = (cells: readonly string[]): string =>
    cells
      .slice(0, columns)
      .map((cell, i) => (i === 0 ? padEndToWidth(cell, widths[0]!) : padStartToWidth(cell, widths[i]!)))
      .join(gap);
  const shown = lines.map((line) => {
    if (line === null) return '…';
    const cells = [cutToWidth(line.name, nameMost), ...cellsOfLine(line, format)];
    const bar = barWidth < barWidthMin ? '' : barOf(line.count / most, barWidth, screen.hasBlocks);
    return `${row(cells)}${bar === '' ? '' : gap}${bar}`.trimEnd();
  });
  const hidden = widths.length - columns;
  const more = hidden > 0 ? [`(${hidden} more columns do not fit here; --csv shows them)`] : [];
  return [row(titles).trimEnd(), ...shown, ...more];
}

function formatOf({ width }: Screen): (count: number) => string {
  return width === null ? String : formatCount;
}

function cellsOfLine({ count, cells }: Line, format: (count: number) => string): string[] {
  return [format(count), ...cells];
}

/** The number of columns that fit into the width; at least 2, the name and the count. */
function fittingColumns(widths: readonly number[], width: number): number {
  let columns = 0;
  let used = -gap.length;
  while (columns < widths.length && (columns < 2 || used + gap.length + widths[columns]! <= width))
    used += gap.length + widths[columns++]!;
  return columns;
}

/** A bar of `part` (0 to 1) of a width. Any part above 0 has at least the shortest bar. */
function barOf(part: number, width: number, hasBlocks: boolean): string {
  if (part === 0) return '';
  if (!hasBlocks) return '#'.repeat(Math.max(1, Math.round(part * width)));
  const length = Math.max(1, Math.round(part * width * 8));
  return '█'.repeat(Math.floor(length / 8)) + eighths[length % 8]!;
}

/** The start of each bucket as local time of the zone, without zeros at the end that all of them have. */
function timeNames(buckets: readonly CountedBucket[], zone: string): string[] {
  const whole = buckets.map(({ from, until }) => wallClock(from, zone) ?? outside(from, until));
  const cut = [' 00:00:00', ':00'].find((end) =>
    whole.every((name) => name.endsWith(end) || !name.includes(':')),
  );
  const names =
    cut === undefined ? whole : whole.map((name) => (name.endsWith(cut) ? name.slice(0, -cut.length) : name));
  // An hour that is repeated when clocks are put back needs the offset to be told apart.
  if (new Set(names).size === names.length) return names;
  return names.map((name, i) => `${name}${offsetText(buckets[i]!.from, zone)}`);
}

function outside(from: number, until: number): string {
  return from < 0 && until < 0 ? 'before the year 1' : 'after the year 9999';
}

interface CountFlags extends GlobalFlags, Omit<QueryBounds, 'limit' | 'fields'> {
  readonly by?: readonly string[];
  readonly of?: readonly string[];
  readonly fn?: readonly string[];
  readonly top?: readonly string[];
  readonly zone?: readonly string[];
  readonly csv?: boolean;
  readonly explain?: boolean;
  readonly workers?: number;
}

/** Runs `logstrata count`: counts matching records, shown as bars on a terminal, else as columns, CSV or JSON. */
export async function count(
  flags: CountFlags,
  { signal }: StopSignals,
  agent: string,
  words: readonly string[],
): Promise<number> {
  const { since, until, after, before, by, of, fn, top, zone, json = false, csv = false } = flags;
  const options = { since, until, after, before, by, of, fn, top, zone };
  const parse = (asked: Asked, { config }: Settings): CountRequest =>
    countRequestIn(asked, words, options, { now: Date.now(), timezone: config.server.timezone });
  return askAgents(flags, 'count', agent, parse, async (store, request) => {
    const counts = await countIn(store, request, signal).catch((error: unknown) => {
      throw countProblem(error);
    });
    if (json) await writeRecords(Buffer.from(countJson(agent, request, counts)));
    else if (csv || request.format === 'csv') await writeRecords(Buffer.from(countCsv(request, counts)));
    else await printLines(describeCounts(request, counts, screen()));
    if (flags.explain === true) describeStats(counts.stats).forEach(tell);
  });
}

/** Parses the words and options of a count of one agent or of several, as `queryIn` those of a query. */
export function countRequestIn(
  asked: Asked,
  words: readonly string[],
  options: Readonly<Record<string, readonly string[] | undefined>>,
  others: Omit<FilterContext, 'schema'>,
): CountRequest {
  const { schema } = asked;
  const context = { ...others, schema };
  if (!('stores' in asked)) return parseCountRequest(rawQueryOf(words, options, schema), context);
  const { since, until, ...common } = options;
  const request = parseSeveralCount(asked, rawQueryOf(words, common, schema), context);
  const within = predicatesWithin(asked, { since, until }, context);
  const of = request.of!.map((query, k) => ({
    ...query,
    predicates: [...query.predicates, ...(within[k] ?? [never])],
  }));
  return { ...request, of };
}

function screen(): Screen {
  const { LC_ALL: all, LC_CTYPE: type, LANG: lang } = process.env;
  // The first one that is set and not empty counts, by POSIX.
  const locale = [all, type, lang].find((name) => name !== undefined && name !== '') ?? '';
  return { width: screenWidth(), hasBlocks: /utf-?8/i.test(locale) };
}
