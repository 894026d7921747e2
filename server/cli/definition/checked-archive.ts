import { fieldsYaml } from '../../../agents/archive/fields-yaml.js';
import { reportArchive, type ArchiveReport } from '../../../agents/archive/archive-report.js';
import { isNumber, unitOf, type InferredColumn } from '../../../agents/archive/inferred-fields.js';
import type { AgentDefinition, ArchiveInput } from '../../../agents/definition/definition.js';
import { yamlText } from '../../../agents/definition/yaml-text.js';
import { formatBytes, formatCount, formatCounted } from '../output/figures.js';
import { withProgress } from '../output/progress.js';
import { withObjects } from '../options/object-storage.js';
import type { Settings } from '../options/settings.js';
import { formatTable } from '../output/table.js';
import { cutEndToWidth } from '../output/text-width.js';

/** Widths in columns of cells with texts from files, chosen so that a line has at most 80. */
const cellWidth = { field: 15, column: 15, stored: 18, read: 18 } as const;

/** Maximum number of problems that are listed. */
const problemsShownMax = 20;

/** Examines the files of an agent's archive, and shows progress. */
export async function checkArchive(
  agent: AgentDefinition,
  archive: ArchiveInput,
  settings: Settings,
): Promise<ArchiveReport> {
  return withProgress(`reading the archive of ${agent.name}`, (progress) =>
    withObjects(settings, false, (objects) =>
      reportArchive(agent, archive, settings.dataFolder, objects, (read, files) =>
        progress.update(read / files, `${formatCount(read)} of ${formatCounted(files, 'file')}`),
      ),
    ),
  );
}

/** The report as lines for people. */
export function describeArchiveReport(agent: AgentDefinition, report: ArchiveReport): string[] {
  const { formats, rows, columns, keys } = report;
  const counts = formats.map(
    ({ format, files, bytes }) => `${formatCounted(files, 'file')} of ${format}, ${formatBytes(bytes)}`,
  );
  const rowCount = rows === null || formats.length === 0 ? '' : `, ${formatCounted(rows, 'row')}`;
  return [
    `archive: ${counts.length === 0 ? 'no file found' : `${counts.join('; ')}${rowCount}`}`,
    ...(keys.length === 0 ? [] : [`folder names give the fields ${keys.join(', ')}`]),
    ...(columns.length === 0 ? [] : [...describePlacing(columns), ...columnTable(columns)]),
    ...(agent.archive?.infersFields === true && columns.length > 0
      ? ['the same as a list, for the agent file:', ...fieldsYaml(columns)]
      : []),
  ];
}

function describePlacing(columns: readonly InferredColumn[]): string[] {
  const placing = columns.find(({ field }) => field.type === 'time');
  if (placing !== undefined) return [`rows are ordered by the field ${placing.field.name}`];
  const numbers = columns.filter(({ field }) => isNumber(field.type));
  const likely = numbers.flatMap(({ field: { name, column }, variants }) => {
    const unit = unitOf(variants);
    if (unit === undefined) return [];
    return `  - { name: ${name}, type: time, source: ${yamlText(column)}, unit: ${unit} }`;
  });
  return [
    'no field is of type time: rows are ordered by when they are attached',
    ...(numbers.length === 0
      ? []
      : ['If a column of numbers is the time, list the fields and give its unit: s, ms, us or ns']),
    ...likely,
  ];
}

function columnTable(columns: readonly InferredColumn[]): string[] {
  const rows = columns.flatMap(({ field, variants }) => {
    const column = field.column === field.name ? '' : cutEndToWidth(field.column, cellWidth.column);
    const first = [cutEndToWidth(field.name, cellWidth.field), field.type, column];
    const unit = field.unit === undefined ? '' : ` in ${field.unit}`;
    if (variants.length === 0) return [[...first, '', '']];
    return variants.map(({ stored, way, reason }, i) => [
      ...(i === 0 ? first : ['', '', '']),
      cutEndToWidth(`${stored}${unit}`, cellWidth.stored),
      cutEndToWidth(reason === '' ? way : `${way}: ${reason}`, cellWidth.read),
    ]);
  });
  return formatTable(['field', 'type', 'column', 'stored as', 'read'], rows);
}

/** The problems of the files, one line each; of many, the first ones and the number of the others. */
export function archiveProblems({ path }: AgentDefinition, report: ArchiveReport): string[] {
  const lines = [
    ...[...report.fieldProblems, ...report.leftOut].map((message) => `${path}: ${message}`),
    ...report.problems.map(({ message }) => message),
  ];
  const more = lines.length - problemsShownMax;
  if (more <= 0) return lines;
  return [...lines.slice(0, problemsShownMax), `… and ${formatCounted(more, 'problem')} more`];
}
