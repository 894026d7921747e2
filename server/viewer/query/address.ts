import { isCursor } from '../records/cursor.js';
import { readDuration } from '../records/time-text.js';
import { filterParameters, gatherFilters } from './filter.js';
import { isOperator, type Operator } from './operators.js';
import type { TimeRange } from './time-range.js';
import { plainView, type Column, type View } from './view.js';

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
    filterParameters(view.filters).map(([name, value]): [string, string] => [name, value]),
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
  if (view.isWrapped) parameters.set('wrap', '1');
  if (view.isNewestFirst) parameters.set('order', 'newest');
  if (view.isLive) parameters.set('live', '1');
  setUnlessEmpty('record', view.cursor);
  if (view.isContext) parameters.set('context', '1');
  // Colons, commas and slashes need no escape in a fragment, and people read addresses.
  const text = parameters.toString().replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%2F', '/');
  return `#/${encodeURIComponent(view.agent)}${text === '' ? '' : `?${text}`}`;
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

interface FilterParameter {
  readonly field: string;
  readonly operator: Operator;
  readonly value: string;
}

function readFilters(parameters: URLSearchParams): readonly FilterParameter[] {
  return [...parameters].flatMap(([name, value]) => {
    const at = name.lastIndexOf('__');
    const operator = name.slice(at + 2);
    return at > 0 && isOperator(operator) ? [{ field: name.slice(0, at), operator, value }] : [];
  });
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
  const textField = parameters.get('in');
  return {
    ...plainView,
    agent,
    filters: gatherFilters(readFilters(parameters)),
    range: readRange(parameters),
    text: parameters.get('text') ?? '',
    ...(textField === null ? {} : { textField }),
    columns: readColumns(parameters.get('columns')),
    isWrapped: parameters.get('wrap') === '1',
    ...(split === null ? {} : { split }),
    ...(isOpen ? { cursor } : {}),
    isContext: isOpen && parameters.get('context') === '1',
    isLive: parameters.get('live') === '1',
    isNewestFirst: parameters.get('order') === 'newest',
  };
}
