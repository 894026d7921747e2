import type { AgentDefinition } from '../../../agents/definition/definition.js';
import type { FieldSummary } from '../../../agents/load/field-tally.js';
import { tryFile, type FileTrial } from '../../../agents/load/file-trial.js';
import { expandFiles } from '../../../agents/load/load-paths.js';
import { LogstrataError, WorkerPool, workersDefault } from '../../../engine/index.js';
import { exitDone, exitFailed } from '../output/failure.js';
import { formatBytes, formatCount, formatCounted, formatTime } from '../output/figures.js';
import { withProgress } from '../output/progress.js';
import type { Settings } from '../options/settings.js';
import { formatTable } from '../output/table.js';
import { printJson, printLines } from '../output/terminal.js';
import { cutEndToWidth, oneLine } from '../output/text-width.js';
import { showValue } from './shown-value.js';

/** Width of the output in columns. */
const columns = 80;
const nameWidth = 18;
const valueWidth = 24;

/**
 * Parses whole files by an agent's definition, and prints what they would become. Stores nothing. Returns exit code 1 where a line would be
 * rejected. Throws `invalid` for an agent that reads no lines.
 */
export async function checkFiles(
  agent: AgentDefinition,
  patterns: readonly string[],
  settings: Settings,
  asJson: boolean,
): Promise<number> {
  if (agent.fields.length === 0 || (agent.file === undefined && agent.archive?.lines === undefined)) {
    throw new LogstrataError('invalid', `agent ${agent.name} reads no lines`);
  }
  const files = await expandFiles(patterns);
  const workers = new WorkerPool(workersDefault());
  const trials: FileTrial[] = [];
  try {
    for (const path of files) {
      const trial = await withProgress(path, (progress) =>
        tryFile(path, {
          definition: agent,
          timezone: settings.config.server.timezone,
          workers,
          onProgress: (fraction, records) => progress.update(fraction, formatCounted(records, 'record')),
        }),
      );
      trials.push(trial);
      if (!asJson) await printLines([...(trials.length > 1 ? [''] : []), ...describeTrial(trial)]);
    }
  } finally {
    await workers.close();
  }
  if (asJson) await printJson(trials.length === 1 ? trials[0] : trials);
  return trials.some(({ rejected }) => rejected > 0) ? exitFailed : exitDone;
}

function describeTrial(trial: FileTrial): string[] {
  const { path, contentBytes, records, rejected, unmatched, reasons, replacedBytes, fields } = trial;
  if (records + rejected === 0) return [`${path}: no lines`];
  const others =
    rejected === 0 ? 'every line matches' : `${formatCounted(rejected, 'line')} would be rejected`;
  return [
    `${path}: ${formatBytes(contentBytes)}, ${formatCounted(records, 'record')}, ${others}`,
    ...(records === 0 ? [] : ['', ...describeFields(fields, records)]),
    ...fields.flatMap(describeUnreadable),
    ...(replacedBytes === 0
      ? []
      : [`${formatCounted(replacedBytes, 'byte sequence')} that is not UTF-8 would become U+FFFD`]),
    ...(rejected === 0 ? [] : ['', ...describeUnmatched(unmatched, reasons)]),
  ];
}

function describeFields(fields: readonly FieldSummary[], records: number): string[] {
  const rows = fields.map((field) => [
    cutEndToWidth(field.name, nameWidth),
    field.type,
    formatCount(field.nulls),
    describeValues(field, records),
  ]);
  const lines = formatTable(['field', 'type', 'nulls', 'values'], rows, [2]);
  return lines.map((line) => cutEndToWidth(line, columns));
}

/** Describes the values of a field: a range for numbers and times, and the most frequent values. */
function describeValues(field: FieldSummary, records: number): string {
  const { min, max, frequent, distinct, type } = field;
  if (frequent.length === 0) return field.nulls === records ? 'none' : 'no frequent value';
  if (distinct === 1) return `always ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`;
  const range =
    min === null || max === null || type === 'bool' ? [] : [`${bound(type, min)} to ${bound(type, max)}`];
  if (type === 'time') return range[0]!;
  const different = distinct === null || distinct === records ? [] : [`${formatCount(distinct)} different`];
  // Values that hardly ever repeat are not worth listing.
  const often = frequent.filter(({ count }) => count * 200 >= records && count > 1);
  const most = often.map(({ value, count }) => {
    const share = Math.round((count * 100) / records);
    return `${cutEndToWidth(shown(field, value), valueWidth)} ${share === 0 ? '<1' : share}%`;
  });
  const first =
    distinct === records
      ? [`all different, such as ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`]
      : [];
  const parts = [
    ...range,
    ...(most.length > 0 ? most : range.length > 0 ? different : [...different, ...first]),
  ];
  return parts.length === 0
    ? `such as ${cutEndToWidth(shown(field, frequent[0]!.value), valueWidth)}`
    : parts.join(', ');
}

function shown({ type }: FieldSummary, value: bigint | number | string): string {
  return showValue(type, value);
}

function bound(type: FieldSummary['type'], value: bigint | number): string {
  return type === 'time' ? formatTime(Number(value)) : String(value);
}

function describeUnreadable({ name, type, unreadable, example }: FieldSummary): string[] {
  if (unreadable === 0) return [];
  const text = cutEndToWidth(JSON.stringify(example ?? ''), valueWidth);
  return [
    `note: ${formatCounted(unreadable, 'value')} of ${name} would be null: not of type ${type}, such as ${text}`,
  ];
}

function describeUnmatched(unmatched: FileTrial['unmatched'], reasons: FileTrial['reasons']): string[] {
  const counts = reasons
    .slice(0, 5)
    .map(({ reason, lines }) => `${formatCount(lines)} × ${cutEndToWidth(reason, columns - 12)}`);
  return [
    ...counts,
    'the first rejected lines:',
    ...unmatched.flatMap(({ line, reason, text }) => [
      `  line ${formatCount(line)}: ${cutEndToWidth(oneLine(text), columns - 10 - formatCount(line).length)}`,
      ...(reasons.length > 1 ? [`    ${cutEndToWidth(reason, columns - 4)}`] : []),
    ]),
  ];
}
