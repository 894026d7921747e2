import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatCount } from '../../server/cli/terminal.js';
import { describeMachine, type MachineDescription } from '../machine.js';
import { measure, type GrowthQuestion, type Measured } from './question.js';
import { addRecords, portionsOf, type Filled, type Portion } from './web-store.js';
import { slopeOf } from '../slope.js';

/** How an archive is filled and asked. */
export interface GrowthOptions {
  /** Whether the messages have `index: full`. */
  readonly isFull: boolean;
  /** Number of made-up segments in an archive of 10^9 records. */
  readonly segments: number;
  /** Numbers of records at which the archive is queried, ascending. */
  readonly sizes: readonly number[];
  /** Number of days that the largest size is spread over. */
  readonly days: number;
  /** Number of new processes for each question and size. */
  readonly repeat: number;
  /** Folder in which the archive is made and removed. */
  readonly dataFolder: string;
}

/** The archive and its answers at one size. */
export interface GrowthStep extends Omit<Filled, 'wanted'> {
  readonly asked: readonly Measured[];
}

/** How times grow with the archive: 0 means constant, 1 means proportional. */
export interface Slope {
  readonly title: string;
  readonly first: number;
  readonly warm: number;
}

/** The result of a run as it is written to the JSON file. */
export interface GrowthResult {
  readonly format: 'logstrata-growth/1';
  readonly startedAt: string;
  readonly machine: MachineDescription;
  readonly settings: { readonly days: number; readonly repeat: number; readonly isFull: boolean };
  readonly steps: readonly GrowthStep[];
  /** Null where there is only one size. */
  readonly slopes: readonly Slope[] | null;
}

const dayMs = 86_400_000;
/** Digits that no record contains. By chance, one in 100,000 archives of 80 million records would contain them; the run would then fail. */
export const absentDigits = 'fedcba987654';
/** A request id that no record has. It is in the middle of the range, so no bounds rule it out. */
export const absentId = `80c4e1d95b${absentDigits}36f9a0d871`;

/** Searches for an id and for some of its digits, each of which occurs once, and for ones that occur nowhere. */
export function needleQuestions(requestId: string): GrowthQuestion[] {
  const like = (digits: string): string => `message__like=${digits}&limit=100`;
  return [
    { id: 'id-once', title: 'exact id, once', raw: `request_id__exact=${requestId}`, rows: 1 },
    { id: 'id-nowhere', title: 'exact id, nowhere', raw: `request_id__exact=${absentId}`, rows: 0 },
    { id: 'text-once', title: '12 digits in the message, once', raw: like(requestId.slice(8, 20)), rows: 1 },
    { id: 'text-nowhere', title: '12 digits, nowhere', raw: like(absentDigits), rows: 0 },
  ];
}

function questionsOf(startMs: number, requestId: string): GrowthQuestion[] {
  const isoDay = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);
  const oldDay = `time__since=${isoDay(startMs)}&time__until=${isoDay(startMs + dayMs)}`;
  return [
    { id: 'newest', title: 'newest 100', raw: 'limit=100', rows: 100 },
    { id: 'old-day', title: 'the oldest day and 404', raw: `${oldDay}&status__eq=404&limit=100`, rows: null },
    ...needleQuestions(requestId),
  ];
}

/**
 * Fills an archive step by step and queries it at each size. The archive is removed at the end, even after a failure. Rejects when `signal`
 * aborts.
 */
export async function runGrowth(
  options: GrowthOptions,
  signal: AbortSignal,
  say: (what: string) => void,
): Promise<GrowthResult> {
  const startedAt = new Date().toISOString();
  const machine = describeMachine();
  mkdirSync(options.dataFolder, { recursive: true });
  const location = mkdtempSync(join(options.dataFolder, 'growth-'));
  const steps: GrowthStep[] = [];
  try {
    let questions: GrowthQuestion[] = [];
    for (const portion of portionsOf(options.sizes, options.days, options.isFull)) {
      const filled = await addPortion(location, portion, signal, say);
      // The same record is searched for at all sizes: one in the middle of the first day.
      if (questions.length === 0) questions = questionsOf(portion.startMs, filled.wanted.requestId);
      const asked: Measured[] = [];
      for (const question of questions) {
        say(`${formatCount(filled.records)} records: ${question.title}`);
        asked.push(await measure(location, question, options.repeat, signal));
      }
      const { records, segments, rowGroups, bytes } = filled;
      steps.push({ records, segments, rowGroups, bytes, asked });
    }
  } finally {
    rmSync(location, { recursive: true, force: true });
  }
  const { days, repeat, isFull } = options;
  const slopes = steps.length < 2 ? null : slopesOf(steps);
  return {
    format: 'logstrata-growth/1',
    startedAt,
    machine,
    settings: { days, repeat, isFull },
    steps,
    slopes,
  };
}

function addPortion(
  location: string,
  portion: Portion,
  signal: AbortSignal,
  say: (what: string) => void,
): Promise<Filled> {
  let shown = -1;
  const middleOfDay = Math.floor(portion.rows / Math.max(1, portion.days) / 2);
  return addRecords(location, portion, middleOfDay, signal, (fraction) => {
    const tenth = Math.floor(fraction * 10);
    if (tenth > shown) say(`adding ${formatCount(portion.rows)} records: ${tenth}0 %`);
    shown = Math.max(shown, tenth);
  });
}

function slopesOf(steps: readonly GrowthStep[]): Slope[] {
  const x = steps.map(({ records }) => Math.log(records));
  return steps[0]!.asked.map(({ title }, i) => {
    const slope = (read: (measured: Measured) => number): number =>
      slopeOf(
        x,
        steps.map(({ asked }) => Math.log(read(asked[i]!))),
      );
    return {
      title,
      first: slope(({ firstMs }) => firstMs.median),
      warm: slope(({ warmMs }) => warmMs.median),
    };
  });
}
