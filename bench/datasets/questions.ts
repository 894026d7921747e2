/** Values of one line of an answer, as texts. */
export type AnswerRow = readonly string[];

/** The body of a count route's answer, as far as the questions ask for it. */
export interface CountAnswer {
  readonly count: number;
  readonly time?: { readonly buckets: readonly { readonly from: number; readonly count: number }[] };
  readonly values?: { readonly top: readonly { readonly value: unknown; readonly count: number }[] };
}

/** A question of a public benchmark that the query route or the count route can ask. */
export interface DatasetQuestion {
  /** The number of the question in its benchmark. */
  readonly id: string;
  readonly title: string;
  readonly route: 'query' | 'count';
  /** What stands behind the `?` of the address. `{id}` is replaced by a value of the column of ids. */
  readonly query: string;
  /** The same question in DuckDB's SQL. `{from}` is replaced by the source of the rows. */
  readonly sql: string;
  /**
   * What both sides must agree in. Where values have equal counts, either may be among the most frequent, so only the counts of a list are
   * compared, and of records their number.
   */
  readonly compared: 'count' | 'counts' | 'buckets' | 'records';
}

/** What both sides must agree in, of an answer of the route. */
export function comparedOf({ compared }: DatasetQuestion, body: string): AnswerRow {
  if (compared === 'records') return [String(body.split('\n').length - 1)];
  const { count, time, values } = JSON.parse(body) as CountAnswer;
  if (compared === 'count') return [String(count)];
  if (compared === 'counts') return (values?.top ?? []).map(({ count: each }) => String(each));
  return (time?.buckets ?? []).map(({ from, count: each }) => `${from} ${each}`);
}

/** The same of the rows that DuckDB returns: a count is the last column of its rows, the beginning of a bucket the first. */
export function comparedOfRows({ compared }: DatasetQuestion, rows: readonly AnswerRow[]): AnswerRow {
  if (compared === 'records') return [String(rows.length)];
  if (compared === 'buckets') return rows.map((row) => `${row[0]!} ${row.at(-1)!}`);
  return rows.map((row) => row.at(-1)!);
}

const bucketOf = (step: string, time: string): string => `epoch_ms(date_trunc('${step}', ${time}))`;

/** Of https://github.com/ClickHouse/ClickBench, by their numbers there, which count from 0. */
export const clickBenchQuestions: readonly DatasetQuestion[] = [
  {
    id: '0',
    title: 'number of rows',
    route: 'count',
    query: '',
    sql: 'SELECT count(*) FROM {from}',
    compared: 'count',
  },
  {
    id: '1',
    title: 'rows of advertisements',
    route: 'count',
    query: 'advengineid__ne=0',
    sql: 'SELECT count(*) FROM {from} WHERE AdvEngineID <> 0',
    compared: 'count',
  },
  {
    id: '7',
    title: 'rows by engine',
    route: 'count',
    query: 'advengineid__ne=0&by=advengineid&top=1000',
    sql: 'SELECT AdvEngineID, count(*) FROM {from} WHERE AdvEngineID <> 0 GROUP BY 1 ORDER BY 2 DESC LIMIT 1000',
    compared: 'counts',
  },
  {
    id: '12',
    title: 'ten most frequent phrases',
    route: 'count',
    query: 'searchphrase__ne=&by=searchphrase&top=10',
    sql: "SELECT SearchPhrase, count(*) FROM {from} WHERE SearchPhrase <> '' GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
    compared: 'counts',
  },
  {
    id: '15',
    title: 'ten most frequent users',
    route: 'count',
    query: 'by=userid&top=10',
    sql: 'SELECT UserID, count(*) FROM {from} GROUP BY 1 ORDER BY 2 DESC LIMIT 10',
    compared: 'counts',
  },
  {
    id: '19',
    title: 'one user',
    route: 'query',
    query: 'userid__eq={id}&fields=userid&limit=10000',
    sql: 'SELECT UserID FROM {from} WHERE UserID = {id} LIMIT 10000',
    compared: 'records',
  },
  {
    id: '20',
    title: 'count of a part of a URL',
    route: 'count',
    query: 'url__regex=google',
    sql: "SELECT count(*) FROM {from} WHERE URL LIKE '%google%'",
    compared: 'count',
  },
  {
    id: '23',
    title: 'whole rows with a part of a URL, by time',
    route: 'query',
    query: 'url__regex=google&limit=10',
    sql: "SELECT * FROM {from} WHERE URL LIKE '%google%' ORDER BY EventTime DESC LIMIT 10",
    compared: 'records',
  },
  {
    id: '33',
    title: 'ten most frequent URLs',
    route: 'count',
    query: 'by=url&top=10',
    sql: 'SELECT URL, count(*) FROM {from} GROUP BY 1 ORDER BY 2 DESC LIMIT 10',
    compared: 'counts',
  },
  {
    id: '42',
    title: 'minutes of two days of a counter',
    route: 'count',
    query:
      'counterid__eq=62&eventtime__since=2013-07-14&eventtime__until=2013-07-16&isrefresh__eq=0&dontcounthits__eq=0&by=eventtime:1m',
    sql:
      `SELECT ${bucketOf('minute', 'EventTime')}, count(*) FROM {from} WHERE CounterID = 62 AND EventTime >= TIMESTAMP '2013-07-14' ` +
      "AND EventTime < TIMESTAMP '2013-07-16' AND IsRefresh = 0 AND DontCountHits = 0 GROUP BY 1 ORDER BY 1",
    compared: 'buckets',
  },
];

/** Of https://github.com/ClickHouse/JSONBench, as far as they count events; its fourth and fifth ask for numbers of each user. */
export const jsonBenchQuestions: readonly DatasetQuestion[] = [
  {
    id: '1',
    title: 'events by collection',
    route: 'count',
    query: 'by=collection&top=100&kind__exists=true',
    sql: 'SELECT collection, count(*) FROM {from} WHERE collection IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 100',
    compared: 'counts',
  },
  {
    id: '2',
    title: 'events and users by collection',
    route: 'count',
    query: 'kind__exact=commit&operation__exact=create&by=collection&top=100&of=did&fn=distinct',
    sql:
      'SELECT collection, count(DISTINCT did), count(*) FROM {from} ' +
      "WHERE kind = 'commit' AND operation = 'create' AND collection IS NOT NULL GROUP BY 1 ORDER BY 3 DESC LIMIT 100",
    compared: 'counts',
  },
  {
    id: '3',
    title: 'posts, reposts and likes by hour',
    route: 'count',
    query:
      'kind__exact=commit&operation__exact=create&collection__in=app.bsky.feed.post&collection__in=app.bsky.feed.repost&collection__in=app.bsky.feed.like&by=time:1h',
    sql:
      `SELECT ${bucketOf('hour', 'time')}, count(*) FROM {from} WHERE kind = 'commit' AND operation = 'create' ` +
      "AND collection IN ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like') GROUP BY 1 ORDER BY 1",
    compared: 'buckets',
  },
  {
    id: 'newest',
    title: 'newest 100 events',
    route: 'query',
    query: 'limit=100',
    sql: 'SELECT * FROM {from} ORDER BY time DESC LIMIT 100',
    compared: 'records',
  },
  {
    id: 'user',
    title: 'events of one user',
    route: 'query',
    query: 'did__exact={id}&limit=10000',
    sql: "SELECT * FROM {from} WHERE did = '{id}' LIMIT 10000",
    compared: 'records',
  },
];
