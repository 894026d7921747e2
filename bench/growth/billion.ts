import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import { describeMachine, type MachineDescription } from '../machine.js';
import { rowGroupRowsMax } from '../../engine/core/limits.js';
import { absentDigits, absentId, needleQuestions } from './growth.js';
import { formatFigure } from '../report/figures.js';
import { addMadeUpSegments, fullSegmentRows, madeUpName, type MadeUp } from './made-up-segments.js';
import type { GrowthOptions } from './growth.js';
import { measure, type Measured } from './question.js';
import { aboutRun, markdownTable, measuredHeader, measuredRow } from './table.js';
import { addRecords, endMs, webAgent } from './web-store.js';

/** The result of a run as it is written to the JSON file. */
export interface BillionResult {
  readonly format: 'logstrata-billion/1';
  readonly startedAt: string;
  readonly machine: MachineDescription;
  readonly repeat: number;
  readonly isFull: boolean;
  readonly records: number;
  readonly madeUp: MadeUp;
  readonly asked: readonly Measured[];
}

const dayMs = 86_400_000;
const hoursOfYear = 365 * 24;

/**
 * Queries an archive of a year for ids and texts. One of its segments is real, the others are made up (`made-up-segments.ts`). The archive
 * is removed at the end, even after a failure. Rejects when `signal` aborts, and where a question reads more of a made-up segment than its
 * filters.
 */
export async function runBillion(
  { repeat, dataFolder, segments, isFull }: GrowthOptions,
  signal: AbortSignal,
  say: (what: string) => void,
): Promise<BillionResult> {
  const startedAt = new Date().toISOString();
  const machine = describeMachine();
  mkdirSync(dataFolder, { recursive: true });
  const location = mkdtempSync(join(dataFolder, 'billion-'));
  try {
    const { name, schema } = webAgent(isFull);
    // One real row group, in the first hour of the year.
    const portion = { isFull, rows: rowGroupRowsMax, startMs: endMs - 365 * dayMs, days: 1 / 24, seed: 1 };
    const { wanted } = await addRecords(location, portion, rowGroupRowsMax >> 1, signal, () => undefined);
    const fieldOf = (wantedName: string): number =>
      schema.fields.findIndex((field) => field.name === wantedName);
    const needles = {
      ids: { field: fieldOf('request_id'), values: [wanted.requestId, absentId] },
      texts: { field: fieldOf('message'), values: [wanted.requestId.slice(8, 20), absentDigits] },
    };
    const size = { count: segments, hours: hoursOfYear - 1 };
    const madeUp = await addMadeUpSegments(location, name, needles, size, (index) => {
      signal.throwIfAborted();
      if (index % 24 === 0) say(`making segment ${index + 1} of ${segments}`);
    });
    const records = rowGroupRowsMax + segments * fullSegmentRows;
    const asked: Measured[] = [];
    for (const question of needleQuestions(wanted.requestId)) {
      say(`${formatCount(records)} records: ${question.title}`);
      asked.push(await measure(location, question, repeat, signal));
    }
    await requireHoles(location, signal);
    return { format: 'logstrata-billion/1', startedAt, machine, repeat, isFull, records, madeUp, asked };
  } finally {
    rmSync(location, { recursive: true, force: true });
  }
}

/** Throws unless a question that needs more than filters fails. Only that proves that the other questions read nothing more. */
async function requireHoles(location: string, signal: AbortSignal): Promise<void> {
  const newest = { id: 'newest', title: 'newest 1', raw: 'limit=1', rows: 1 };
  const failure = await measure(location, newest, 1, signal).then(
    () => 'it was answered',
    (error: unknown) => String(error),
  );
  signal.throwIfAborted();
  if (!failure.includes(madeUpName))
    throw new Error(`a question that needs more than a made-up segment has should fail: ${failure}`);
}

/** The false positive rate of a sketch: all of three bits are set in a block of 256 bits with the bits of 64 values. */
const sketchPasses = (1 - (1 - 1 / 256) ** (3 * 64)) ** 3;
const filterPasses = 0.011;

/** The result as Markdown, with the expected figures. */
export function billionReport({
  machine,
  startedAt,
  repeat,
  isFull,
  records,
  madeUp,
  asked,
}: BillionResult): string {
  const { segments, rowGroups, bytes } = madeUp;
  return [
    `${aboutRun(machine, startedAt)}; ${isFull ? 'messages with index: full; ' : ''}${repeat} fresh processes for each figure`,
    '',
    `${formatCount(records)} records: one real row group and ${formatCount(segments)} made-up segments of ${formatCount(rowGroups)} row groups, ` +
      `whose filters and summaries take ${formatBytes(bytes)}.`,
    '',
    markdownTable([measuredHeader, ...asked.map((measured) => measuredRow(records, measured))]),
    'What arithmetic says:',
    '',
    markdownTable([['what', 'how many', 'because'], ...arithmetic(madeUp, asked)]),
  ].join('\n');
}

function arithmetic(madeUp: MadeUp, asked: readonly Measured[]): string[][] {
  const { segments, rowGroups, gramBytes, gramFill, passed } = madeUp;
  const [idOnce, idNowhere, textOnce, textNowhere] = asked;
  const left = rowGroups * sketchPasses;
  const grams = absentDigits.length - gramBytes + 1;
  return [
    ['summaries, the first time', formatCount(segments), 'one a segment'],
    ['ids: stripes of sketches', formatCount(segments), 'one a segment'],
    [
      'ids: pieces of filters',
      formatCount(left),
      `sketches leave ${percent(sketchPasses)} of the row groups; each is one read, the first time with its checksums two`,
    ],
    passingRow(
      'ids',
      left * filterPasses,
      passed.ids,
      `${percent(filterPasses)} of those`,
      idOnce!,
      idNowhere!,
    ),
    [
      'texts: pieces of filters',
      formatCount((rowGroups * (1 - gramFill ** grams)) / (1 - gramFill)),
      `grams are looked up in each row group until one is missing, and ${percent(gramFill)} of the bits are set`,
    ],
    passingRow(
      'texts',
      rowGroups * gramFill ** grams,
      passed.texts,
      `all ${grams} grams of ${gramBytes} bytes are there by chance`,
      textOnce!,
      textNowhere!,
    ),
  ];
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** The row about row groups that filters pass by chance, which the made-up archive does not have. */
function passingRow(
  what: string,
  expected: number,
  passed: readonly number[],
  because: string,
  once: Measured,
  nowhere: Measured,
): string[] {
  const eachMs = Math.max(0, once.warmMs.median - nowhere.warmMs.median);
  return [
    `${what}: row groups that pass by chance, not in the figures above`,
    formatCount(expected),
    `${because}; filters made anew for it: ${passed.map(formatCount).join(' and ')}. Each costs a footer, the first time, and a column: with that in ` +
      `memory some ${formatFigure(eachMs, 'ms')} ms ("once" less "nowhere"), ${formatFigure(expected * eachMs, 'ms')} in all`,
  ];
}
