import {
  fieldNameProblem,
  fieldsMax,
  fieldTypes,
  typeFacts,
  LogstrataError,
  nearName,
  timeUnits,
  type FieldIndex,
  type FieldType,
  type TimeUnit,
} from '../../engine/index.js';
import type { FieldDefinition } from './definition.js';
import { compileTemplate } from './template.js';
import {
  isTimestampFormatName,
  isUndated,
  lacksZone,
  type TimestampFormat,
  timestampProblem,
} from '../../engine/times/timestamp.js';
import { zoneProblem } from '../../engine/times/zone.js';
import { joinNames, type YamlSection } from './yaml.js';

const fieldKeys = [
  'name',
  'type',
  'source',
  'description',
  'index',
  'timestamp',
  'unit',
  'template',
  'time_format',
];
const unitNames = Object.keys(timeUnits) as readonly TimeUnit[];

/** What the fields of an agent can be read from. */
export interface FieldInputs {
  /** The available parsed fields; undefined where they are not known (JSON, or an invalid pattern). */
  readonly sources: readonly string[] | undefined;
  /** Whether there are lines to parse. */
  readonly hasLines: boolean;
  /** Whether there are Parquet or Arrow files, whose columns are used directly. */
  readonly hasColumns: boolean;
}

/** Reads the list of an agent's fields. Problems are added to the section's list; the result is valid only if there are none. */
export function readFields(root: YamlSection, inputs: FieldInputs): readonly FieldDefinition[] {
  const sections = root.sections('fields', 'a field', fieldKeys);
  if (sections === undefined) return [];
  if (sections.length === 0) root.problem('fields', 'fields is empty: an agent needs at least one field');
  if (sections.length > fieldsMax) {
    root.problem('fields', `fields has ${sections.length} fields, but at most ${fieldsMax} are allowed`);
  }
  const lines = new Map<string, number>();
  return sections.flatMap((section) => {
    const field = readField(section, inputs);
    if (field === undefined) return [];
    const line = lines.get(field.name);
    if (line !== undefined)
      section.problem(
        'name',
        `the field "${field.name}" is defined twice; it is already defined on line ${line}`,
      );
    else lines.set(field.name, section.placeOf('name').line);
    return [field];
  });
}

function readField(section: YamlSection, inputs: FieldInputs): FieldDefinition | undefined {
  const { sources } = inputs;
  const name = section.text('name');
  const givenType = section.oneOf('type', fieldTypes);
  const timestamp = readTimestamp(section, inputs);
  const unit = readUnit(section, givenType, timestamp, inputs);
  const template = section.text('template');
  const index = section.booleanOr('index', ['full']);
  const description = section.text('description');
  const source = section.text('source');
  if (template !== undefined) checkTemplate(section, name, template, sources);
  if (name === undefined) {
    if (!section.has('name')) section.missing('name', 'each field of the list begins with "- name: …"');
    return undefined;
  }
  const nameProblem = fieldNameProblem(name);
  if (nameProblem !== undefined) section.problem('name', nameProblem);
  if (timestamp !== undefined && givenType !== undefined && givenType !== 'time') {
    section.note(
      `the field "${name}" is of type time, because it has a timestamp; "type: ${givenType}" is not used`,
    );
  }
  const type = timestamp !== undefined ? 'time' : (givenType ?? (unit === undefined ? 'string' : 'time'));
  checkIndex(section, name, type, index);
  if (template === undefined && nameProblem === undefined)
    checkSource(section, name, source ?? name, sources);
  if (template !== undefined) checkColumn(section, name, inputs);
  if (source !== undefined && template !== undefined) {
    section.note(`the field "${name}" is made by its template; "source: ${source}" is not used`);
  }
  return { name, type, source: source ?? name, description, index, timestamp, unit, template };
}

function checkIndex(section: YamlSection, name: string, type: FieldType, index: FieldIndex): void {
  if (index === 'full' && type !== 'string')
    section.problem(
      'index',
      `index: full is only for fields of type string, but "${name}" is of type ${type}`,
    );
  else if (index === true && !typeFacts[type].hasFilters)
    section.problem(
      'index',
      `index is only for fields of type string or int, but "${name}" is of type ${type}`,
    );
}

/** Reads the unit of a column's numbers: `unit`, or seconds for the timestamp format `unix`. */
function readUnit(
  section: YamlSection,
  type: FieldType | undefined,
  timestamp: TimestampFormat | undefined,
  { hasColumns }: FieldInputs,
): TimeUnit | undefined {
  const unit = section.oneOf('unit', unitNames);
  if (unit !== undefined && !hasColumns) {
    const message =
      'unit is only for numeric times in Parquet and Arrow files (archive); for lines use timestamp';
    section.problem('unit', message);
  }
  if (unit !== undefined && timestamp === undefined && type !== undefined && type !== 'time')
    section.problem('unit', `unit is only for fields of type time, but this one is of type ${type}`);
  return unit ?? (hasColumns && timestamp?.format === 'unix' ? 's' : undefined);
}

/** Checks a time zone against the inputs: it applies to texts without one, and most columns of Parquet and Arrow files have times. */
function checkZone(
  section: YamlSection,
  { format, timezone = 'UTC' }: TimestampFormat,
  { hasLines, hasColumns }: FieldInputs,
): void {
  // A column of texts may need it.
  const isOfTexts = timestampProblem({ format }) === undefined && lacksZone({ format });
  if (!hasColumns || timezone.toUpperCase() === 'UTC' || isOfTexts) return;
  const rule = 'times without a zone in Parquet and Arrow files are taken as UTC';
  if (hasLines) section.note(`timezone is used only for lines; ${rule}`, 'timezone');
  else
    section.problem(
      'timezone',
      `timezone is only for lines: ${rule}. Remove it, or let the program that writes the files convert the times`,
    );
}

/** Checks a template against the inputs: Parquet and Arrow files have columns, and no lines for a template. */
function checkColumn(section: YamlSection, name: string, { hasLines, hasColumns }: FieldInputs): void {
  if (!hasColumns) return;
  if (hasLines) {
    section.note(
      `the template of "${name}" is used only for lines; from Parquet and Arrow files the field reads the column "${name}"`,
    );
    return;
  }
  const message =
    'a template uses the parts of a line, which Parquet and Arrow files do not have: name a column (source)';
  section.problem('template', message);
}

function readTimestamp(section: YamlSection, inputs: FieldInputs): TimestampFormat | undefined {
  const timestamp = section.section('timestamp', ['format', 'timezone']);
  const older = section.text('time_format');
  if (older !== undefined)
    section.note(`time_format is the older way to write "timestamp: { format: ${older} }"`);
  if (older !== undefined && timestamp !== undefined) {
    section.problem('time_format', 'time_format is the old name of timestamp.format: keep only one of them');
  }
  // An empty `timestamp:` has no value and so no section; the field is not a time then.
  if (timestamp === undefined && older === undefined) return undefined;
  const written = timestamp?.text('format') ?? older ?? 'rfc3339';
  const format = isTimestampFormatName(written.toLowerCase()) ? written.toLowerCase() : written;
  const problem = timestampProblem({ format });
  const place =
    timestamp?.has('format') === true ? timestamp.placeOf('format') : section.placeOf('time_format');
  if (problem !== undefined) section.problem(place, problem);
  const timezone = timestamp?.text('timezone');
  const badZone = timezone === undefined ? undefined : zoneProblem(timezone);
  if (badZone !== undefined) timestamp!.problem('timezone', badZone);
  else if (timezone !== undefined) checkZone(timestamp!, { format, timezone }, inputs);
  if (inputs.hasColumns && problem === undefined && isUndated({ format }))
    section.note(`the format ${format} has no year, so it is used only for lines`);
  return timezone === undefined ? { format } : { format, timezone };
}

/** Whether a part is one of `sources`, where NAME stands for any name. */
function isSupplied(source: string, sources: readonly string[]): boolean {
  return sources.includes(source) || sources.includes(source.replace(/^(container\.attrs\.).+$/, '$1NAME'));
}

/** Checks that a source exists: without it the field would always be null. */
function checkSource(
  section: YamlSection,
  name: string,
  source: string,
  sources: readonly string[] | undefined,
): void {
  if (sources === undefined || isSupplied(source, sources)) return;
  const there = sources.length === 0 ? 'there is none' : `there are ${joinNames(sources, 'and')}`;
  const what = `the field "${name}" reads "${source}", which nothing supplies${nearName(source, sources)}`;
  section.problem(section.has('source') ? 'source' : 'name', `${what}: ${there}`);
}

/** Checks a template. It may use a part that a line lacks, which is then empty; a part that can never exist gives a note. */
function checkTemplate(
  section: YamlSection,
  name: string | undefined,
  template: string,
  sources: readonly string[] | undefined,
): void {
  try {
    const { fields } = compileTemplate(template);
    if (sources === undefined) return;
    for (const field of fields.filter((each) => !isSupplied(each, sources))) {
      const hint = nearName(field, sources);
      section.note(
        `the template of "${name ?? ''}" uses "${field}", which nothing supplies${hint}; it is always empty`,
        'template',
      );
    }
  } catch (error) {
    if (!(error instanceof LogstrataError)) throw error;
    section.problem('template', error.message);
  }
}
