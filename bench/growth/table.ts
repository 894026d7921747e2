import { formatBytes, formatCount } from '../../server/cli/terminal.js';
import type { MachineDescription } from '../machine.js';
import { formatFigure } from '../report/figures.js';
import type { Spread } from '../spread.js';
import type { GrowthResult } from './growth.js';
import type { Cost, Measured } from './question.js';

/** A Markdown table of rows of cells, the first of which is the header. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |`);
  return [lines[0], `|${'---|'.repeat(rows[0]!.length)}`, ...lines.slice(1), ''].join('\n');
}

/** The machine, the commit and the time of the figures. */
export function aboutRun(machine: MachineDescription, startedAt: string): string {
  return (
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; load before the run ${machine.loadBefore.toFixed(2)}; ` +
    `commit ${machine.commit ?? 'unknown'}; ${startedAt}`
  );
}

/** The header of the cells of `measuredRow`. */
export const measuredHeader = [
  'question',
  'records',
  'warm, ms',
  'half within',
  'read',
  'pieces of filters',
  'first time, ms',
  'half within',
  'read',
  'pieces of filters',
  'from the disk, ms',
  'half within',
  'disk',
  'row groups',
  'scanned',
] as const;

const ms = (value: number): string => formatFigure(value, 'ms');
const half = ({ lower, upper }: Spread): string => `${ms(lower)} – ${ms(upper)}`;
const pieces = ({ valuePiecesRead, gramPiecesRead }: Cost): string =>
  formatCount(valuePiecesRead + gramPiecesRead);

/** The row of a question at one size. */
export function measuredRow(
  records: number,
  { title, warm, first, warmMs, firstMs, fromDisk }: Measured,
): string[] {
  return [
    title,
    formatCount(records),
    ms(warmMs.median),
    half(warmMs),
    formatBytes(warm.bytesRead),
    pieces(warm),
    ms(firstMs.median),
    half(firstMs),
    formatBytes(first.bytesRead),
    pieces(first),
    ...(fromDisk === null
      ? ['–', '–', '–']
      : [ms(fromDisk.firstMs.median), half(fromDisk.firstMs), formatBytes(fromDisk.bytes)]),
    formatCount(first.rowGroups),
    formatCount(first.rowGroupsScanned),
  ];
}

/** The result as Markdown. */
export function growthReport(
  { machine, startedAt, steps, slopes, settings }: GrowthResult,
  plot: string,
): string {
  const questions = steps[0]!.asked.map((_, i) =>
    steps.map(({ records, asked }) => measuredRow(records, asked[i]!)),
  );
  const sizes = steps.map(({ records, segments, rowGroups, bytes }) => [
    formatCount(records),
    formatCount(segments),
    formatCount(rowGroups),
    formatBytes(bytes),
  ]);
  const inclines = (slopes ?? []).map(({ title, warm, first }) => [title, warm.toFixed(2), first.toFixed(2)]);
  return [
    `${aboutRun(machine, startedAt)}; ${settings.isFull ? 'messages with index: full; ' : ''}${settings.days} days, ${settings.repeat} fresh processes for each figure`,
    '',
    `![Time over records](${plot})`,
    '',
    markdownTable([measuredHeader, ...questions.flat()]),
    'How times grow, as powers of the number of records: 0 is not at all, 1 is as the archive does.',
    '',
    markdownTable([['question', 'warm', 'first time'], ...inclines]),
    markdownTable([['records', 'segments', 'row groups', 'on disk'], ...sizes]),
  ].join('\n');
}
