import { setDays, setStartMs, type RecordSet } from './record-set.js';
import { idColumns, type Anchor, type Filter, type Question, type SetName } from './question.js';
import type { ProbeRecord, Probes } from './probes.js';

const dayMs = 86_400_000;
/** A limit above any answer that is requested as a whole; the maximum of our route. */
const limitWhole = 1_000_000;
/**
 * Twelve digits that no request id contains. An id has 32 digits of 0-9a-f, so chance could produce them, but the sets do not contain them
 * (checked: 0 records).
 */
const absentId = 'fedcba987654';
/** Two request ids that therefore no record has. They are in the middle of the range of ids, so the bounds of a row group can't rule them out. */
const absentRequestIds = [`80c4e1d95b${absentId}36f9a0d871`, `70c4e1d95b${absentId}36f9a0d871`] as const;

function isoDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

function anchorOf(set: SetName, record: ProbeRecord): Anchor {
  return {
    seq: record.seq,
    key: { column: idColumns[set], op: set === 'web' ? 'exact' : 'eq', value: record.key },
  };
}

function bulkAnchor(set: SetName, { bulkStart }: Probes): Anchor {
  return bulkStart === null ? { seq: 0, key: null } : anchorOf(set, bulkStart);
}

/** Searches for an id in `message`: with gram filters, without them, and cold. */
function idSearches(probes: Probes): Question[] {
  const id = probes.wanted.key.slice(8, 20);
  const search = (
    value: string,
    rowsExpected: number,
  ): Pick<Question, 'set' | 'limit' | 'filters' | 'rowsExpected' | 'needle'> => ({
    set: 'web',
    limit: 100,
    filters: [{ column: 'message', op: 'like', value }],
    rowsExpected,
    needle: 'text',
  });
  const once = search(id, 1);
  const never = search(absentId, 0);
  return [
    { ...once, id: 'id-once', title: '12-digit id that occurs once', targetMs: 25 },
    { ...never, id: 'id-nowhere', title: '12-digit id that occurs nowhere', targetMs: 25 },
    {
      ...once,
      id: 'id-once-unfiltered',
      title: 'id that occurs once, gram filters off',
      isUnindexed: true,
      targetMs: 200,
    },
    {
      ...never,
      id: 'id-nowhere-unfiltered',
      title: 'id that occurs nowhere, gram filters off',
      isUnindexed: true,
      targetMs: 200,
    },
    { ...once, id: 'id-once-cold', title: 'id that occurs once, cold', isCold: true },
    {
      ...once,
      id: 'pattern-once',
      title: 'pattern with a text that occurs once',
      filters: [{ column: 'message', op: 'regex', value: `[0-9a-f]${id}[0-9a-f]{4}` }],
    },
    {
      id: 'pattern-all',
      title: 'pattern without a text, over every record',
      set: 'web',
      limit: limitWhole,
      isWhole: true,
      // One id in ten thousand has such digits.
      filters: [{ column: 'message', op: 'regex', value: '[a-f]{9}[0-9]{7}' }],
      needle: 'text',
    },
    {
      ...once,
      id: 'id-once-unfiltered-cold',
      title: 'id that occurs once, cold, gram filters off',
      isCold: true,
      isUnindexed: true,
    },
  ];
}

/** Searches for request ids as whole values, warm and cold. */
function requestSearches(probes: Probes): Question[] {
  const search = (
    filter: Omit<Filter, 'column'>,
    rowsExpected: number,
  ): Pick<Question, 'set' | 'limit' | 'filters' | 'rowsExpected' | 'needle'> => ({
    set: 'web',
    limit: 100,
    filters: [{ column: idColumns.web, ...filter }],
    rowsExpected,
    needle: 'value',
  });
  const once = search({ op: 'exact', value: probes.oldest.key }, 1);
  const never = search({ op: 'exact', value: absentRequestIds[0] }, 0);
  return [
    { ...once, id: 'request-once', title: 'request_id that occurs once, in the oldest day', targetMs: 3 },
    { ...never, id: 'request-nowhere', title: 'request_id that occurs nowhere', targetMs: 3 },
    {
      ...search({ op: 'in', value: [absentRequestIds[0], probes.oldest.key, absentRequestIds[1]] }, 1),
      id: 'request-in',
      title: 'three request_ids, of which one occurs',
      targetMs: 3,
    },
    { ...once, id: 'request-once-cold', title: 'request_id that occurs once, cold', isCold: true },
    { ...never, id: 'request-nowhere-cold', title: 'request_id that occurs nowhere, cold', isCold: true },
  ];
}

function status(op: 'eq' | 'gte', value: number): Filter {
  return { column: 'status', op, value };
}

function webQuestions({ probes }: RecordSet): Question[] {
  return [
    ...newestRecords(),
    ...idSearches(probes),
    ...requestSearches(probes),
    ...filtered(probes),
    ...pages(probes),
    ...long(),
    ...counts(),
    bulk(probes),
  ];
}

function newestRecords(): Question[] {
  const set = 'web';
  return [
    { id: 'newest', title: 'newest 100', set, limit: 100, filters: [], targetMs: 0.5 },
    {
      id: 'newest-errors',
      title: 'newest 100 with status ≥ 500',
      set,
      limit: 100,
      filters: [status('gte', 500)],
      targetMs: 1,
    },
  ];
}

function filtered(probes: Probes): Question[] {
  const set = 'web';
  const middleDayMs = setStartMs + Math.floor(setDays / 2) * dayMs;
  return [
    {
      id: 'common-word',
      title: 'common word in user_agent, newest 100',
      set,
      limit: 100,
      filters: [{ column: 'user_agent', op: 'like', value: 'chrome' }],
      targetMs: 0.8,
    },
    {
      id: 'prefix-status-day',
      title: 'prefix AND status = 404 AND one day',
      set,
      limit: 100,
      filters: [
        { column: 'path', op: 'prefix', value: '/api/v1/orders' },
        status('eq', 404),
        { column: 'time', op: 'since', value: isoDay(middleDayMs) },
        { column: 'time', op: 'until', value: isoDay(middleDayMs + dayMs) },
      ],
      targetMs: 3,
    },
    {
      id: 'rare-address',
      title: 'exact on a rare address',
      set,
      limit: 100,
      filters: [{ column: 'remote_addr', op: 'exact', value: probes.rareAddress }],
      rowsExpected: Math.min(100, probes.rareAddressRows),
      targetMs: 10,
    },
    {
      id: 'either-rare',
      title: 'one request_id, or a 12-digit id in message',
      set,
      limit: 100,
      filters: [],
      any: [
        { column: idColumns.web, op: 'exact', value: probes.oldest.key },
        { column: 'message', op: 'like', value: probes.wanted.key.slice(8, 20) },
      ],
      rowsExpected: 2,
    },
  ];
}

function pages(probes: Probes): Question[] {
  const set = 'web';
  const middle = anchorOf(set, probes.middle);
  return [
    {
      id: 'page-after',
      title: 'page after a cursor in the middle',
      set,
      limit: 100,
      after: middle,
      filters: [],
      targetMs: 0.5,
    },
    {
      id: 'page-before',
      title: 'page before it, status = 404',
      set,
      limit: 100,
      before: middle,
      filters: [status('eq', 404)],
      targetMs: 0.9,
    },
  ];
}

/** Questions that examine every record. */
function long(): Question[] {
  const set = 'web';
  return [
    {
      id: 'three-filters',
      title: 'three filters over every record, 0.5 % match',
      set,
      limit: limitWhole,
      isWhole: true,
      filters: [
        { column: 'method', op: 'exact', value: 'POST' },
        status('eq', 200),
        { column: 'bytes', op: 'gte', value: 7900 },
      ],
      targetMs: 60,
    },
  ];
}

/** Questions for counts, whose answers have no records. */
function counts(): Question[] {
  const common = {
    set: 'web',
    limit: 0,
    filters: [{ column: 'method', op: 'exact', value: 'POST' }],
  } as const;
  return [
    {
      ...common,
      id: 'count-hour',
      title: 'count by hour, method = POST',
      counting: { byHour: true, top: 0 },
    },
    {
      ...common,
      id: 'count-top',
      title: 'count by user_agent, top 10',
      filters: [],
      counting: { byHour: false, column: 'user_agent', top: 10 },
      targetMs: 20,
    },
    {
      ...common,
      id: 'count-cross',
      title: 'count by hour and status',
      filters: [],
      counting: { byHour: true, column: 'status', top: 100 },
    },
    {
      ...common,
      id: 'count-bytes',
      title: 'count by hour, bytes ≥ 0',
      filters: [{ column: 'bytes', op: 'gte', value: 0 }],
      counting: { byHour: true, top: 0 },
    },
    {
      ...common,
      id: 'avg-hour',
      title: 'average of bytes by hour',
      filters: [],
      counting: { byHour: true, top: 0, number: { column: 'bytes', fn: 'avg' } },
    },
    {
      ...common,
      id: 'p99-path',
      title: 'p99 of request_time by path, top 10',
      filters: [],
      counting: { byHour: false, column: 'path', top: 10, number: { column: 'request_time', fn: 'p99' } },
    },
    { ...common, id: 'count-sum', title: 'count of method = POST', counting: { byHour: false, top: 0 } },
  ];
}

function bulk(probes: Probes): Question {
  const set = 'web';
  return {
    id: 'bulk',
    title: `${probes.bulkRows.toLocaleString('en-US')} records as JSON Lines`,
    set,
    limit: probes.bulkRows,
    after: bulkAnchor(set, probes),
    filters: [],
    rowsExpected: probes.bulkRows,
    targetMs: 350,
  };
}

function appQuestions({ probes }: RecordSet): Question[] {
  const set = 'app';
  return [
    { id: 'app-newest', title: 'app: newest 100', set, limit: 100, filters: [] },
    {
      id: 'app-errors',
      title: 'app: newest 100 errors',
      set,
      limit: 100,
      filters: [{ column: 'level', op: 'exact', value: 'error' }],
    },
    {
      id: 'app-name',
      title: 'app: a name that is not ASCII, in a slow record',
      set,
      limit: 100,
      filters: [
        { column: 'message', op: 'like', value: 'ReNée' },
        { column: 'duration', op: 'gte', value: 200 },
      ],
    },
    {
      id: 'app-trace',
      title: 'app: one trace_id',
      set,
      limit: 100,
      filters: [{ column: idColumns.app, op: 'eq', value: probes.wanted.key }],
      rowsExpected: 1,
      needle: 'value',
    },
    {
      id: 'app-trace-nowhere',
      title: 'app: a trace_id that occurs nowhere',
      set,
      limit: 100,
      // Ids are drawn from 2^63 numbers, so the next number is not the id of another record.
      filters: [{ column: idColumns.app, op: 'eq', value: String(BigInt(probes.wanted.key) + 1n) }],
      rowsExpected: 0,
      needle: 'value',
    },
    {
      id: 'app-page-after',
      title: 'app: page after a cursor in the middle',
      set,
      limit: 100,
      after: anchorOf(set, probes.middle),
      filters: [],
    },
  ];
}

/** The questions about a set. */
export function questionsOf(set: RecordSet): Question[] {
  return set.name === 'web' ? webQuestions(set) : appQuestions(set);
}
