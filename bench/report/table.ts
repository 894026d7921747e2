import { formatBytes, formatCount, formatSpan, formatTable } from '../../server/cli/terminal.js';
import type { BenchResult, ResultLine } from '../result.js';
import { formatAdvantage, formatFigure } from './figures.js';

const header = [
  'what',
  'unit',
  'target',
  'ours',
  'half of the runs within',
  'runs',
  'peers',
  'best peer',
  'ours against it',
  'against indexes',
];

function peersText(line: ResultLine): string {
  return Object.entries(line.figures)
    .filter(([side]) => side !== line.ours)
    .map(([side, { median }]) => `${side} ${formatFigure(median, line.unit)}`)
    .join(', ');
}

function rowOf(line: ResultLine): string[] {
  const ours = line.figures[line.ours];
  const figure = (value: number | undefined): string =>
    value === undefined ? '-' : formatFigure(value, line.unit);
  return [
    line.title,
    line.unit,
    line.target ?? '',
    figure(ours?.median),
    ours === undefined || ours.count === 1 ? '' : `${figure(ours.lower)} – ${figure(ours.upper)}`,
    String(ours?.count ?? 0),
    peersText(line),
    line.best?.side ?? '-',
    line.best === null ? '-' : formatAdvantage(line.best.advantage),
    line.indexed.map(({ side, advantage }) => `${side} ${formatAdvantage(advantage)}`).join(', '),
  ];
}

/** Lines about the run: the machine, the sets, the programs, and the missing peers. */
export function describeRun(result: BenchResult): string[] {
  const { machine, settings, sets } = result;
  return [
    `${machine.cpu}, ${machine.cores} cores, ${formatBytes(machine.memoryBytes)}, ${machine.system}, Node ${machine.node}; ` +
      `load before the run ${machine.loadBefore.toFixed(2)}; commit ${machine.commit ?? 'unknown'}`,
    ...sets.map(
      ({ name, rows, bytes, days }) =>
        `set ${name}: ${formatCount(rows)} records over ${days} days, ${formatBytes(bytes)} of JSON Lines`,
    ),
    `${settings.threads} threads a side, ${formatBytes(settings.cacheBytes)} for our decoded columns, ${settings.turns} rounds; ` +
      `${result.startedAt}, took ${formatSpan(result.seconds * 1000)}`,
    ...Object.entries(result.versions).map(([side, version]) => `${side}: ${version}`),
    ...result.missing.map(({ peer, reason }) => `NOT MEASURED ${peer}: ${reason}`),
  ];
}

/** The table for a terminal. */
export function terminalTable(result: BenchResult): string[] {
  const columns = [0, 1, 3, 4, 6, 7, 8, 9];
  const pick = (row: readonly string[]): string[] => columns.map((i) => row[i]!);
  return formatTable(
    pick(header),
    result.lines.map((line) => pick(rowOf(line))),
    [2, 3, 6],
  );
}

/** The result as Markdown. */
export function markdownReport(result: BenchResult, plotName: string): string {
  const cells = (row: readonly string[]): string =>
    `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    `# Benchmark ${result.name}`,
    '',
    ...describeRun(result).map((line) => `- ${line}`),
    '',
    'Medians. `ours against it` is how many times better than the best peer without an index we are: above 1 ahead, below 1 behind; the last',
    'column is the same for each peer with an index. Targets are for 10 million records. What each line does, and how to repeat it:',
    '[docs/benchmarks.md](../../docs/benchmarks.md).',
    '',
    `![How many times better than the best peer](${plotName})`,
    '',
    cells(header),
    cells(header.map(() => '---')),
    ...result.lines.map((line) => cells(rowOf(line))),
    '',
  ].join('\n');
}
