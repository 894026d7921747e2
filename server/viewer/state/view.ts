import { durationText, readDuration, shortTimeText, type Zone } from './texts.js';
import {
  type Conditions,
  type Filter,
  filterParameters,
  groupParameters,
  groupsMax,
  operatorWords,
  type Parameter,
  readConditions,
} from './filter.js';
import { FailureError, failureOf } from './failure.js';
import { isCursor } from './record.js';
import { anyField, clocksOf, type Field, fieldWords } from './field.js';
import { searchParameters } from './search.js';

/** The time range of a view. */
export type TimeRange =
  | { readonly kind: 'all' }
  /** From now back; `length` is written like `15m` or `1d 12h`. */
  | { readonly kind: 'last'; readonly length: string }
  /** Between two times, the second exclusive. At least one is set. */
  | {
      readonly kind: 'between';
      readonly sinceMs?: number | undefined;
      readonly untilMs?: number | undefined;
    };

/** A range in milliseconds since the epoch, `untilMs` exclusive; unbounded where an end is undefined. */
export interface Span {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** A range with both ends. */
export interface Extent {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** The lengths that the range menu offers. */
export const usualLengths = ['5m', '15m', '1h', '6h', '1d', '7d', '30d'] as const;

/** The span of a range at the time `nowMs`. */
export function spanOf(range: TimeRange, nowMs: number): Span {
  switch (range.kind) {
    case 'all':
      return {};
    case 'last':
      return { sinceMs: nowMs - (readDuration(range.length) ?? 0) };
    case 'between':
      return { sinceMs: range.sinceMs, untilMs: range.untilMs };
  }
}

/** The text for a range on its button. */
export function rangeText(range: TimeRange, zone: Zone): string {
  switch (range.kind) {
    case 'all':
      return 'All time';
    case 'last':
      return `Last ${durationText(readDuration(range.length) ?? 0)}`;
    case 'between': {
      const { sinceMs, untilMs } = range;
      if (sinceMs === undefined) return `Before ${shortTimeText(untilMs ?? 0, zone)}`;
      if (untilMs === undefined) return `From ${shortTimeText(sinceMs, zone)}`;
      const until = shortTimeText(untilMs, zone);
      const since = shortTimeText(sinceMs, zone);
      // The day is not repeated where both are the same.
      return `${since} – ${until.slice(0, 10) === since.slice(0, 10) ? until.slice(11) : until}`;
    }
  }
}

/** The newest tenth of a range, for a query that would read too much. A range that is open at its end stays open. */
export function shortened(range: TimeRange, { sinceMs, untilMs }: Extent): TimeRange {
  const fromMs = Math.round(untilMs - Math.max(1, (untilMs - sinceMs) / 10));
  return { kind: 'between', sinceMs: fromMs, untilMs: range.kind === 'between' ? range.untilMs : undefined };
}

/** The adjacent range of the same length, before or after. */
export function shifted({ sinceMs, untilMs }: Extent, direction: -1 | 1): TimeRange {
  const byMs = (untilMs - sinceMs) * direction;
  return { kind: 'between', sinceMs: sinceMs + byMs, untilMs: untilMs + byMs };
}

/** The range extended on each side by half of its length. */
export function widened({ sinceMs, untilMs }: Extent): TimeRange {
  const byMs = Math.max(1000, (untilMs - sinceMs) / 2);
  return { kind: 'between', sinceMs: Math.round(sinceMs - byMs), untilMs: Math.round(untilMs + byMs) };
}

/** A column of the table. */
export interface Column {
  readonly name: string;
  /** In pixels; undefined for the default width. */
  readonly width?: number | undefined;
}

/** The functions of the numbers of a field that a line can show. */
export const lineFunctions = ['avg', 'sum', 'min', 'max', 'p50', 'p95', 'p99'] as const;

/** A function of the numbers of a field, computed for each bar of the histogram. */
export interface NumberLine {
  readonly field: string;
  readonly fn: (typeof lineFunctions)[number];
}

/** What the table shows. The address of the page contains all of it, so the address can be shared. */
export interface View extends Conditions {
  /** The agent, or several joined by commas. */
  readonly agent: string;
  readonly range: TimeRange;
  /** The search (`readSearch`), and the field to search in; undefined for all string fields. */
  readonly text: string;
  readonly textField?: string | undefined;
  /** Empty for the default columns. */
  readonly columns: readonly Column[];
  readonly isWrapped: boolean;
  /** The field by which the histogram is split. Empty: not split; undefined: by the severity field. */
  readonly split?: string | undefined;
  /** The number that is drawn as a line over the histogram. */
  readonly line?: NumberLine | undefined;
  /** The cursor of the open record. */
  readonly cursor?: string | undefined;
  /** Whether the open record is shown among its neighbours, without filters. */
  readonly isContext: boolean;
  readonly isLive: boolean;
  /** Whether the newest record is at the top. */
  readonly isNewestFirst: boolean;
}

/** Maximum number of agents in a view. */
export const agentsMax = 16;

/** The names of the agents of a view. */
export function agentNames(agent: string): readonly string[] {
  return agent === '' ? [] : agent.split(',');
}

/** The default view. */
export const plainView: View = {
  agent: '',
  filters: [],
  groups: [],
  range: { kind: 'all' },
  text: '',
  columns: [],
  isWrapped: false,
  isContext: false,
  isLive: false,
  isNewestFirst: false,
};

/** Whether both views request the same records. */
export function asksTheSame(one: View, other: View): boolean {
  return (
    one.agent === other.agent &&
    one.text === other.text &&
    one.textField === other.textField &&
    sameData(one.filters, other.filters) &&
    sameData(one.groups, other.groups) &&
    sameData(one.range, other.range)
  );
}

function sameData(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

const widthMin = 40;
const widthMax = 4000;
/** Upper bound of the columns in an address, so that a forged address can't fill the table with columns. */
const columnsMax = 200;

function timeParameter(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('.000Z', 'Z');
}

/** The fragment of the page's address for a view, such as `#/nginx?status__gte=500&last=1h`. Filters are written as for the query route. */
export function addressOf(view: View): string {
  const parameters = new URLSearchParams(
    [...filterParameters(view.filters), ...groupParameters(view.groups.map(filterParameters))].map(
      ([name, value]): [string, string] => [name, value],
    ),
  );
  const setUnlessEmpty = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== '') parameters.set(name, value);
  };
  setUnlessEmpty('text', view.text);
  setUnlessEmpty('in', view.text === '' ? undefined : view.textField);
  if (view.range.kind === 'last') setUnlessEmpty('last', view.range.length.replaceAll(' ', ''));
  if (view.range.kind === 'between') {
    const { sinceMs, untilMs } = view.range;
    setUnlessEmpty('since', sinceMs === undefined ? undefined : timeParameter(sinceMs));
    setUnlessEmpty('until', untilMs === undefined ? undefined : timeParameter(untilMs));
  }
  setUnlessEmpty(
    'columns',
    view.columns.map(({ name, width }) => (width === undefined ? name : `${name}:${width}`)).join(','),
  );
  if (view.split !== undefined) parameters.set('split', view.split);
  if (view.line !== undefined) parameters.set('line', lineText(view.line));
  if (view.isWrapped) parameters.set('wrap', '1');
  if (view.isNewestFirst) parameters.set('order', 'newest');
  if (view.isLive) parameters.set('live', '1');
  setUnlessEmpty('record', view.cursor);
  if (view.isContext) parameters.set('context', '1');
  // Colons, commas and slashes need no escape in a fragment, and people read addresses.
  const text = parameters.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%2F', '/');
  return `#/${agentNames(view.agent).map(encodeURIComponent).join(',')}${text === '' ? '' : `?${text}`}`;
}

function readMoment(text: string | null): number | undefined {
  if (text === null) return undefined;
  const timeMs = /^-?\d{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isNaN(timeMs) || Math.abs(timeMs) > 8.64e15 ? undefined : timeMs;
}

function readRange(parameters: URLSearchParams): TimeRange {
  const length = parameters.get('last');
  if (length !== null && readDuration(length) !== undefined) return { kind: 'last', length };
  const sinceMs = readMoment(parameters.get('since'));
  const untilMs = readMoment(parameters.get('until'));
  return sinceMs === undefined && untilMs === undefined
    ? { kind: 'all' }
    : { kind: 'between', sinceMs, untilMs };
}

function readColumns(text: string | null): readonly Column[] {
  if (text === null || text === '') return [];
  const columns = new Map<string, Column>();
  for (const part of text.split(',').slice(0, columnsMax)) {
    const [name, width] = part.split(':');
    const pixels = Math.round(Number(width ?? NaN));
    if (name === undefined || name === '') continue;
    columns.set(name, pixels >= widthMin && pixels <= widthMax ? { name, width: pixels } : { name });
  }
  return [...columns.values()];
}

/** A line as it stands in an address: `duration:p95`. */
export function lineText({ field, fn }: NumberLine): string {
  return `${field}:${fn}`;
}

/** Reads what `lineText` writes; undefined for anything else. */
export function readLine(text: string | null): NumberLine | undefined {
  const at = text?.lastIndexOf(':') ?? -1;
  const fn = lineFunctions.find((name) => name === text?.slice(at + 1));
  return at > 0 && fn !== undefined ? { field: text!.slice(0, at), fn } : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parses the fragment of an address to a view. Invalid parts are ignored. */
export function readAddress(hash: string): View {
  const text = hash.startsWith('#/') ? hash.slice(2) : '';
  const mark = text.indexOf('?');
  const agent = decoded(mark < 0 ? text : text.slice(0, mark));
  const parameters = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  const cursor = parameters.get('record') ?? '';
  const isOpen = isCursor(cursor);
  const split = parameters.get('split');
  const line = readLine(parameters.get('line'));
  const textField = parameters.get('in');
  return {
    ...plainView,
    agent,
    ...readConditions([...parameters]),
    range: readRange(parameters),
    text: parameters.get('text') ?? '',
    ...(textField === null ? {} : { textField }),
    columns: readColumns(parameters.get('columns')),
    isWrapped: parameters.get('wrap') === '1',
    ...(split === null ? {} : { split }),
    ...(line === undefined ? {} : { line }),
    ...(isOpen ? { cursor } : {}),
    isContext: isOpen && parameters.get('context') === '1',
    isLive: parameters.get('live') === '1',
    isNewestFirst: parameters.get('order') === 'newest',
  };
}

/** Which records of an agent to request, without position and limit. */
export interface Question {
  readonly agent: string;
  readonly parameters: readonly Parameter[];
  /** Why the server can't be asked this. */
  readonly refusal?: string | undefined;
}

/**
 * The field in which a view searches for its text; undefined for an agent without string fields. An empty list of fields means that they
 * are not known yet.
 */
export function searchedField(view: View, fields: readonly Field[]): string | undefined {
  const mayHaveText = fields.length === 0 || fields.some(({ type }) => type === 'string');
  return mayHaveText ? (view.textField ?? anyField) : undefined;
}

/** The question of a view. `span` is the view's range at a given time; it is fixed, so that all pages get the same question. */
export function questionOf(
  view: View,
  fields: readonly Field[],
  span: Span,
  filters: readonly Filter[] = view.filters,
): Question {
  const searched = searchedField(view, fields);
  const lists = [
    ...view.groups.map(filterParameters),
    ...(searched === undefined ? [] : searchParameters(view.text, searched)),
    ...spanLists(fields, span),
  ];
  const groups = lists.filter(({ length }) => length > 1).length;
  const refusal = `A query can have at most ${groupsMax} groups joined by “or”, and this one has ${groups}.`;
  return {
    agent: view.agent,
    parameters: [...filterParameters(filters), ...groupParameters(lists)],
    ...(groups > groupsMax ? { refusal } : {}),
  };
}

/** The filters for a span on the time fields of the agents, of each of which one must match; none where there is no such field. */
function spanLists(fields: readonly Field[], { sinceMs, untilMs }: Span): readonly (readonly Parameter[])[] {
  const clocks = clocksOf(fields);
  const ends = [
    ['since', sinceMs],
    ['until', untilMs],
  ] as const;
  return ends.flatMap(([operator, timeMs]) => {
    if (timeMs === undefined || clocks.length === 0) return [];
    // The route accepts ISO 8601 for every year, including times around the epoch.
    const moment = new Date(timeMs).toISOString();
    return [clocks.map((clock): Parameter => [`${clock}__${operator}`, moment])];
  });
}

/** The path and query string of a request to an agent's route. Throws a FailureError where the server can't be asked the question. */
export function requestPath(
  route: 'query' | 'count',
  { agent, parameters, refusal }: Question,
  more: readonly Parameter[] = [],
): string {
  if (refusal !== undefined) throw new FailureError(failureOf('request', refusal));
  const query = new URLSearchParams(
    [...parameters, ...more].map(([name, value]): [string, string] => [name, value]),
  ).toString();
  return `/api/${route}/${encodeURIComponent(agent)}${query === '' ? '' : `?${query}`}`;
}

/** A filter in words: `status ≥ 500`, `level is one of error, warn`. */
export function filterText({ field, operator, values }: Filter): string {
  const shown = values.map((value) => (value === '' ? '""' : value)).join(', ');
  return `${fieldWords(field)} ${operatorWords(operator)} ${shown}`.trimEnd();
}

/** Filters of which one must match, in words. */
export function groupText(filters: readonly Filter[]): string {
  return filters.map(filterText).join(' or ');
}

/** A view in one line, for lists of views. */
export function viewText(view: View, searched: string | undefined): string {
  const parts = [...view.filters.map(filterText), ...view.groups.map(groupText)];
  if (view.text !== '') parts.unshift(`${fieldWords(searched ?? anyField)} contains ${view.text}`);
  if (view.range.kind === 'last') parts.push(`last ${view.range.length}`);
  if (view.range.kind === 'between') parts.push('between two times');
  return `${agentNames(view.agent).join(', ')}: ${parts.length === 0 ? 'everything' : parts.join(' · ')}`;
}
