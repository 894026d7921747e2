import { formatBytes } from '../../server/cli/terminal.js';
import type { MeasuredLine } from '../runner.js';
import { spreadOf } from '../spread.js';
import { answered, counted, type Answered, type FarBed } from './far-bed.js';

/** Number of rounds for short and for long questions. */
export interface Rounds {
  readonly short: number;
  readonly long: number;
}

/** Rounds at the beginning that are not counted. */
const warmUpRounds = 3;
const pageRows = 100;
/** The maximum limit of the route. */
const longRows = 1_000_000;

type Work = (round: number) => Promise<Answered>;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** The milliseconds of several pieces of work, which take turns. Throws where their answers differ, unless `isCompared` is false. */
async function inTurns(works: readonly Work[], rounds: number, isCompared = true): Promise<number[][]> {
  const times = works.map((): number[] => []);
  for (let round = -warmUpRounds; round < rounds; round++) {
    const answers: Answered[] = [];
    for (const [i, work] of works.entries()) {
      const ms = await timed(async () => answers.push(await work(Math.abs(round))));
      if (round >= 0) times[i]!.push(ms);
    }
    if (isCompared && answers.some(({ digest }) => digest !== answers[0]!.digest))
      throw new Error('near and far do not answer the same');
  }
  return times;
}

/** The line for two sides with the same answers: how much longer the second one took. */
function comparedLine(
  what: string,
  target: string,
  [base, other]: readonly [base: string, other: string],
  times: readonly number[][],
): MeasuredLine {
  const [baseMs, otherMs] = times.map((each) => spreadOf(each).median);
  const addedMs = spreadOf(times[1]!.map((ms, i) => ms - times[0]![i]!)).median;
  return {
    what,
    target,
    figure:
      `${addedMs.toFixed(2)} ms more (median of ${times[0]!.length} pairs; ${baseMs!.toFixed(2)} ms ${base}, ` +
      `${otherMs!.toFixed(2)} ms ${other})`,
    values: { addedMs, baseMs: baseMs!, otherMs: otherMs! },
  };
}

/** Measures what a far tier adds to queries for near records: for the newest ones, and for the newest ones of a filter. */
export async function measureNear({ near, far }: FarBed, { short }: Rounds): Promise<MeasuredLine[]> {
  const lines: MeasuredLine[] = [];
  for (const raw of [`limit=${pageRows}`, `status__gte=500&limit=${pageRows}`]) {
    const times = await inTurns([() => answered(near, raw), () => answered(far, raw)], short);
    const what = `\`${raw}\` of the newest day, with a far tier beside`;
    lines.push(comparedLine(what, 'nothing measurable', ['without', 'with'], times));
  }
  return lines;
}

/** Measures pages of far records without filters, forward and backward, each at another position. */
export async function measurePages(bed: FarBed, { short }: Rounds): Promise<MeasuredLine[]> {
  const { near, far, firstHour } = bed;
  const hours = (bed.days - 1) * 24;
  const lines: MeasuredLine[] = [];
  for (const direction of ['after', 'before'] as const) {
    // Hours in an order other than by time, each once before any is repeated: 37 and the number of hours have no common factor.
    const rawOf = (round: number): string =>
      `${direction}=${bed.cursorAt(firstHour + 1 + ((37 * round) % (hours - 2)))}&limit=${pageRows}`;
    const times = await inTurns(
      [(round) => answered(near, rawOf(round)), (round) => answered(far, rawOf(round))],
      short,
    );
    const what = `a page of ${pageRows} \`${direction}\` a cursor, far`;
    lines.push(comparedLine(what, '≤ 15 ms more', ['near', 'far'], times));
  }
  return lines;
}

/** Measures the search for an id that occurs once, in the middle, compared with the best statement for it in ClickHouse. */
export async function measureId(bed: FarBed, { short }: Rounds): Promise<MeasuredLine> {
  const id = bed.wanted.requestId;
  const own: Work = () => answered(bed.far, `request_id__exact=${id}`);
  const [question] = (await bed.questionsOf(() => own(0))).slice(-1);
  const columns = /SELECT (_cursor, .*?) FROM/.exec(question!)![1]!;
  const sql =
    `SELECT ${columns} FROM logs.web WHERE request_id__string = '${id}' ORDER BY _cursor DESC LIMIT 100 ` +
    'SETTINGS use_query_condition_cache = 0 FORMAT JSONEachRow';
  const theirs: Work = async () => ({ bytes: (await bed.ask(sql)).length, digest: '' });
  const [theirMs, ownMs] = (await inTurns([theirs, own], short, false)).map(
    (times) => spreadOf(times).median,
  );
  const ratio = ownMs! / theirMs!;
  const questions = (await bed.questionsOf(() => own(0))).length;
  return {
    what: 'an id that occurs once, far, beside the best phrasing for ClickHouse',
    target: '≤ 1.2 ×',
    figure: `${ratio.toFixed(2)} × (${ownMs!.toFixed(1)} ms in ${questions} questions, ${theirMs!.toFixed(1)} ms)`,
    values: { ratio, ownMs: ownMs!, theirMs: theirMs!, questions },
  };
}

/** Measures counts by value over all records, with a filter; the servers do the counting. */
export async function measureCounts({ near, far }: FarBed, { long }: Rounds): Promise<MeasuredLine[]> {
  const times = await inTurns([() => counted(near), () => counted(far)], long);
  return [comparedLine('all records with `status__gte=400` by `method`', '', ['near', 'far'], times)];
}

/** Measures reading a million records, and the same in ClickHouse alone in several formats. */
export async function measureLong(bed: FarBed, { long }: Rounds): Promise<MeasuredLine[]> {
  const rows = Math.min(longRows, bed.shipping.rows);
  const raw = `after=${bed.cursorAt(bed.firstHour)}&limit=${rows}`;
  const lines: MeasuredLine[] = [];
  const [nearTimes, farTimes] = await inTurns(
    [() => answered(bed.near, raw), () => answered(bed.far, raw)],
    long,
  );
  const { bytes } = await answered(bed.far, raw);
  const [nearMs, farMs] = [nearTimes!, farTimes!].map((times) => spreadOf(times).median);
  const megabytes = bytes / 1e6 / (farMs! / 1000);
  lines.push({
    what: `${rows.toLocaleString('en')} records out, far`,
    target: '≥ 150 MB/s',
    figure: `${megabytes.toFixed(0)} MB/s (${formatBytes(bytes)} in ${(farMs! / 1000).toFixed(2)} s; near ${(nearMs! / 1000).toFixed(2)} s)`,
    values: { rows, bytes, farMs: farMs!, nearMs: nearMs!, megabytes },
  });
  const [question] = await bed.questionsOf(() => answered(bed.far, raw.replace(/limit=\d+/, 'limit=1')));
  const columns = /SELECT (_cursor, .*?) FROM/.exec(question!)![1]!;
  const first = BigInt(`0x${bed.cursorAt(bed.firstHour)}`);
  const values: Record<string, number> = {};
  for (const format of ['Null', 'Native', 'RowBinary', 'JSONEachRow']) {
    const sql = `SELECT ${columns} FROM logs.web WHERE _cursor > ${first} ORDER BY _cursor LIMIT ${rows} FORMAT ${format}`;
    const times: number[] = [];
    for (let round = 0; round < long; round++) times.push(await timed(() => bed.ask(sql)));
    values[format] = spreadOf(times).median;
  }
  lines.push({
    what: 'the same of ClickHouse alone, as one answer, by format',
    target: '',
    figure: Object.entries(values)
      .map(([format, ms]) => `${format} ${(ms / 1000).toFixed(2)} s`)
      .join(', '),
    values,
  });
  return lines;
}
