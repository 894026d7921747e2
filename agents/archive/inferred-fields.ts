import {
  answeredValue,
  conversionOf,
  fieldsMax,
  fieldTypes,
  nearName,
  typeFacts,
  type FieldType,
  type TimeUnit,
  LogstrataError,
  type ObjectStorage,
} from '../../engine/index.js';
import { joinNames, yamlText } from '../definition/yaml.js';
import type { ColumnFacts } from './column-facts.js';
import { type Footer, type FooterRead, FileFooters } from './file-footers.js';
import type { FoundFile, PathProblem } from './found-files.js';
import { schemaOf } from '../definition/agent-file.js';
import type { AgentDefinition, ArchiveInput } from '../definition/definition.js';
import type { CollectLog } from '../collect/logs/collect-log.js';

/** A field made of a column of an archive's files, or of a key of their folders. */
export interface InferredField {
  readonly name: string;
  readonly type: FieldType;
  /** Name of the column or key. */
  readonly column: string;
  readonly unit?: TimeUnit | undefined;
  /** The format of the texts of a column that are times. */
  readonly format?: string | undefined;
}

/** One way in which files store a column. */
export interface ColumnVariant extends ColumnFacts {
  /** Number of files that store it so. */
  files: number;
  /** Path of one of these files. */
  readonly path: string;
  isNull?: true | undefined;
  isWide?: true | undefined;
  /** Set where they are the same in all files. */
  unit?: TimeUnit | undefined;
  format?: string | undefined;
}

/** A column of the files, or a key of their folders. */
export interface InferredColumn {
  readonly field: InferredField;
  /** One per way in which files store the column; empty for a key of folders. */
  readonly variants: readonly ColumnVariant[];
}

/** Result of the inference. */
export interface InferredFields {
  /** The column that places records comes first, keys of folders last. */
  readonly columns: readonly InferredColumn[];
  /** Why files do not fit the fields that the agent has already, or why no field places the records. */
  readonly problems: readonly string[];
  /** Columns that are no fields, and why. */
  readonly leftOut: readonly string[];
  /** Columns whose names give no name of a field, and what their fields are called. */
  readonly renamed: readonly string[];
}

/** Limit on distinct columns, to bound the memory where all files have different ones. Long before it, the number of fields is an error. */
const columnsMax = 10 * fieldsMax;

/** Number of columns that a message names. */
const namedMax = 20;

/** A column that exported files have in addition to fields. */
const cursorColumn = '_cursor';

/**
 * The field name of a column: lower case, with `_` for each run of characters other than ASCII letters and digits. Empty
 * where nothing remains.
 */
export function fieldNameOf(column: string): string {
  const name = column
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '');
  return /^[0-9]/.test(name) ? `n_${name}` : name;
}

interface KnownColumn {
  readonly column: string;
  readonly unit?: TimeUnit | undefined;
  /** Set for a field that the agent has already: its name and type stay. */
  readonly name?: string;
  /** The type of the files' columns; undefined for what is only a key of folders. */
  type: FieldType | undefined;
  /** Whether `type` is that of values, and not only of columns without any. */
  hasValues: boolean;
  /** Whether it has integers that a float may not represent exactly. */
  isWide: boolean;
  /** For a key of folders, the values as types: those that can't hold all of them. */
  readonly key?: KeyTypes;
}

/** What the values of a key of folders are. A null or empty value (`key=`) is null for any type but text. */
interface KeyTypes {
  readonly misfits: Set<FieldType>;
  hasValues: boolean;
}

/**
 * Makes the fields of an agent from the columns of its files and the keys of their `key=value` folders, which are added one
 * by one. In a file in such a folder, the key replaces a column of the same name. A column that some files lack is null
 * there. A field gets the type that holds the values of all files without loss: a column without any value fits every type,
 * integers and floats together are floats where these are exact, and what differs otherwise is text.
 *
 * Fields that an agent has already are not changed; a file that does not fit one without loss is a problem. Only an int
 * becomes a string, of the same digits, where an unsigned integer is too large for it, or where a folder's value is no int:
 * folders of months may begin with 10, and get a 01 in January.
 */
export class FieldInference {
  private readonly columns = new Map<string, KnownColumn>();
  /** The ways in which files store a column, by column. */
  private readonly stored = new Map<string, ColumnVariant[]>();
  private readonly problems = new Set<string>();
  private readonly leftOut = new Set<string>();
  /** Cache: what was made of a list of columns, by the keys that replaced some of them. */
  private readonly seen = new Map<readonly ColumnFacts[], Map<string, readonly ColumnVariant[]>>();

  /** Begins with the fields that an agent has already. Files may add others. */
  constructor(known: readonly InferredField[] = []) {
    for (const field of known) this.columns.set(field.column, { ...field, hasValues: true, isWide: false });
  }

  /** Adds a file. */
  add({ path, keys }: FoundFile, { columns }: Footer): void {
    for (const [key, value] of keys) this.addKey(key, value, path);
    const seen = this.seen.get(columns) ?? new Map<string, readonly ColumnVariant[]>();
    this.seen.set(columns, seen);
    const combination = [...keys.keys()].join('/');
    const known = seen.get(combination);
    if (known !== undefined) {
      for (const variant of known) variant.files++;
      return;
    }
    const variants: ColumnVariant[] = [];
    for (const column of columns) {
      const { name } = column;
      if (name === cursorColumn || this.stored.size > columnsMax) continue;
      variants.push(this.variantOf(column, path));
      if (!keys.has(name)) this.addColumn(column, path);
    }
    seen.set(combination, variants);
  }

  private addKey(key: string, value: string | null, path: string): void {
    const none: KnownColumn = { column: key, type: undefined, hasValues: false, isWide: false };
    const known = this.columns.get(key) ?? none;
    const types = known.key ?? { misfits: new Set<FieldType>(), hasValues: false };
    if (known.key === undefined) this.columns.set(key, { ...known, key: types });
    if (value === null || value === '') return;
    types.hasValues = true;
    for (const type of fieldTypes) if (!isOfType(value, type)) types.misfits.add(type);
    if (known.name !== undefined && known.type !== 'int' && !isOfType(value, known.type!))
      this.problems.add(misfitOfKey(key, value, path, known));
  }

  private addColumn(column: ColumnFacts, path: string): void {
    const { name, type, isNull = false, isWide = false } = column;
    const known = this.columns.get(name);
    if (known?.name !== undefined) {
      const isLarge = known.type === 'int' && column.isUnsigned64 === true && type === 'string';
      if (isLarge) known.type = 'string';
      else if (!fitsField(known, column)) this.problems.add(misfit(column, path, known));
    } else if (known?.type === undefined) {
      this.columns.set(name, { ...known, column: name, type, isWide, hasValues: !isNull });
    } else if (!isNull || !known.hasValues) {
      known.isWide ||= isWide;
      known.type = isNull || known.hasValues ? widened(known.type, type, known.isWide) : type;
      known.hasValues ||= !isNull;
    }
  }

  private variantOf(column: ColumnFacts, path: string): ColumnVariant {
    const known = this.stored.get(column.name) ?? [];
    this.stored.set(column.name, known);
    const same = known.find(({ stored, reason }) => stored === column.stored && reason === column.reason);
    if (same !== undefined) {
      same.files++;
      if (column.isNull !== true) addFacts(same, column);
      return same;
    }
    const variant = { ...column, files: 1, path };
    known.push(variant);
    return variant;
  }

  /** The columns and keys of the files, with the ways in which they are stored. */
  variants(): ReadonlyMap<string, readonly ColumnVariant[]> {
    const found = new Map<string, readonly ColumnVariant[]>(this.stored);
    for (const { column, key } of this.columns.values()) if (key !== undefined) found.set(column, []);
    return found;
  }

  /**
   * Returns the fields. `time` names the field that places records, by its name or that of its column; without it, that is
   * the first field of type time.
   */
  finish(time: string | undefined): InferredFields {
    const names = this.fieldNames();
    const found = [...this.columns.values()];
    const rank = ({ name, key }: KnownColumn): number => (name !== undefined ? 0 : key === undefined ? 1 : 2);
    const columns = found
      .toSorted((a, b) => rank(a) - rank(b))
      .map((each): InferredColumn => {
        const { column, unit } = each;
        const field = { name: names.get(column)!, type: typeOf(each), column, unit };
        return { field, variants: this.stored.get(column) ?? [] };
      });
    const placing = this.placing(columns, time);
    const at = placing === undefined ? -1 : columns.indexOf(placing);
    const known = found.filter(({ name }) => name !== undefined).length;
    if (at >= known) columns.splice(known, 0, ...columns.splice(at, 1));
    const renamed = columns.flatMap(({ field: { name, column } }, i) =>
      i < known || fieldNameOf(column) !== '' ? [] : renamedTo(column, name),
    );
    const rest = columns.splice(fieldsMax).map(({ field }) => JSON.stringify(field.column));
    if (rest.length > 0) this.leftOut.add(tooMany(rest));
    return { columns, problems: [...this.problems], leftOut: [...this.leftOut], renamed };
  }

  /**
   * The names of the fields, by column. Where several columns would get the same name, it is that of the column which is called so, or else of
   * the first; the others get a number.
   */
  private fieldNames(): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    const taken = new Set<string>();
    const take = (column: string, name: string): void => {
      names.set(column, name);
      taken.add(name);
    };
    for (const { column, name } of this.columns.values()) if (name !== undefined) take(column, name);
    const others = [...this.columns.keys()].filter((column) => !names.has(column));
    for (const column of others)
      if (fieldNameOf(column) === column && !taken.has(column)) take(column, column);
    const numbers = new Map<string, number>();
    for (const column of others) {
      if (names.has(column)) continue;
      const wanted = fieldNameOf(column) || 'column';
      let name = wanted;
      let number = numbers.get(wanted) ?? 2;
      for (; taken.has(name); number++) name = `${wanted}_${number}`;
      numbers.set(wanted, number);
      take(column, name);
    }
    return names;
  }

  private placing(columns: readonly InferredColumn[], time: string | undefined): InferredColumn | undefined {
    const times = columns.filter(({ field }) => field.type === 'time');
    if (time === undefined) return times[0];
    const named = columns.find(({ field }) => field.name === time || field.column === time);
    const placing = named?.field.type === 'time' ? named : undefined;
    if (placing === undefined) this.problems.add(noTime(time, named?.field, times));
    return placing;
  }
}

/** The type that holds the values of all files and folders. */
function typeOf({ name, type, hasValues, key }: KnownColumn): FieldType {
  if (name !== undefined) return type === 'int' && key?.misfits.has('int') === true ? 'string' : type!;
  if (type !== undefined && key?.hasValues !== true) return type;
  if (type !== undefined && hasValues) return key!.misfits.has(type) ? 'string' : type;
  return key!.hasValues && !key!.misfits.has('int') ? 'int' : 'string';
}

const datePattern = /^\d{4}-\d\d-\d\d/;

/** Whether a folder's value is the text of a value of a type, so that nothing is lost. A leading zero makes it a name. */
function isOfType(value: string, type: FieldType): boolean {
  const parsed = typeFacts[type].parse(value);
  if (parsed === null) return false;
  return type === 'time' ? datePattern.test(value) : String(answeredValue(type, parsed)) === value;
}

/** Whether a field gets every value of a column of a file. */
export function fitsField(
  { type, unit, format }: Pick<InferredField, 'unit' | 'format'> & { readonly type?: FieldType | undefined },
  column: ColumnFacts,
): boolean {
  const isRead = isNumber(column.type)
    ? unit !== undefined
    : column.type === 'string' && (format !== undefined || unit === 's');
  if (column.isNull === true || (type === 'time' && isRead)) return true;
  const conversion = conversionOf(column.type, type!);
  return conversion !== 'toNull' && (conversion !== 'intToFloat' || column.isWide !== true);
}

/** Adds what another file's footer says of the values of a column. */
function addFacts(variant: ColumnVariant, { isWide, unit, format }: ColumnFacts): void {
  variant.unit = variant.isNull === true || variant.unit === unit ? unit : undefined;
  variant.format = variant.isNull === true || variant.format === format ? format : undefined;
  variant.isWide ??= isWide;
  variant.isNull = undefined;
}

/** The type that holds the values of two types. */
function widened(a: FieldType, b: FieldType, isWide: boolean): FieldType {
  if (a === b) return a;
  return isNumber(a) && isNumber(b) && !isWide ? 'float' : 'string';
}

/** The type that holds all values of a column, however the files store it. */
export function typeOfVariants(variants: readonly ColumnVariant[]): FieldType {
  const isWide = variants.some((variant) => variant.isWide === true);
  const types = variants.filter(({ isNull }) => isNull !== true).map(({ type }) => type);
  return types.reduce((a, b) => widened(a, b, isWide), types[0] ?? 'string');
}

/** How the numbers of all files are times of our days, or their texts are times: by a unit or a format. Neither is set where their bounds do not show it. */
export function timesIn(variants: readonly ColumnVariant[]): Pick<InferredField, 'unit' | 'format'> {
  const [first, ...others] = variants.filter(({ isNull }) => isNull !== true);
  const isSame = others.every(({ unit, format }) => unit === first!.unit && format === first!.format);
  return isSame ? { unit: first?.unit, format: first?.format } : {};
}

/** Whether values of a type are numbers, which a unit turns into times. */
export function isNumber(type: FieldType): boolean {
  return type === 'int' || type === 'float';
}

function renamedTo(column: string, name: string): string {
  return `the name of the column ${JSON.stringify(column)} has none of a to z and 0 to 9, so its field is called ${name}`;
}

function tooMany(columns: readonly string[]): string {
  const more = columns.length > namedMax ? ` and ${columns.length - namedMax} more` : '';
  const named = columns.slice(0, namedMax).join(', ');
  return `an agent has at most ${fieldsMax} fields, so these columns are left out: ${named}${more}. List the wanted fields`;
}

/** What to do about a field that can't hold all values. A string holds any. */
function advice({ name, type }: KnownColumn): string {
  return `which the field "${name}" of type ${type} can't hold without loss, so the file is left out: list the fields, as "logstrata check" prints them, with this one as type: string`;
}

function misfit({ name, type, stored }: ColumnFacts, path: string, known: KnownColumn): string {
  return `${path}: the column ${JSON.stringify(name)} is ${type} (${stored}) here, ${advice(known)}`;
}

function misfitOfKey(key: string, value: string, path: string, known: KnownColumn): string {
  return `${path}: the key ${JSON.stringify(key)} of its folder has the value ${JSON.stringify(value)}, ${advice(known)}`;
}

function noTime(time: string, field: InferredField | undefined, times: readonly InferredColumn[]): string {
  const names = times.map((column) => column.field.name);
  const there = `the columns of type time are ${joinNames(names, 'and') || 'none'}`;
  if (field === undefined)
    return `time names the column "${time}", which no file has${nearName(time, names)}: ${there}`;
  const advice = isNumber(field.type) ? '; list the fields, with a unit for this one' : '';
  return `time names the column "${time}", which is of type ${field.type}: ${there}${advice}`;
}

/** The fields of an agent whose fields are the columns of its files. New files may add fields; those that do not fit the existing ones without loss are refused. */
export class FieldGrowth {
  private fields: readonly InferredField[];
  private readonly leftOut = new Set<string>();

  /** @param onLeftOut receives once each message about columns that are no fields */
  constructor(
    private readonly definition: AgentDefinition,
    private readonly onLeftOut: (message: string) => void,
  ) {
    this.fields = definition.fields.map(({ name, type, source, unit }) => ({
      name,
      type,
      column: source,
      unit,
    }));
  }

  /** Decides which files agree with the fields, and gives the reasons for the others. `definition` is set where there are new fields. */
  take(
    files: readonly FoundFile[],
    footers: ReadonlyMap<string, FooterRead>,
  ): {
    readonly taken: readonly FoundFile[];
    readonly refused: readonly PathProblem[];
    readonly definition: AgentDefinition | undefined;
  } {
    const before = this.fields;
    const taken: FoundFile[] = [];
    const refused: PathProblem[] = [];
    for (const file of files) {
      const footer = footers.get(file.path);
      if (footer === undefined || footer instanceof LogstrataError) continue;
      const problem = this.grow(file, footer);
      if (problem === undefined) taken.push(file);
      else refused.push({ path: file.path, message: problem });
    }
    return {
      taken,
      refused,
      definition: this.fields === before ? undefined : withFields(this.definition, this.fields),
    };
  }

  private grow(file: FoundFile, footer: Footer): string | undefined {
    const inference = new FieldInference(this.fields);
    inference.add(file, footer);
    const { columns, problems, leftOut, renamed } = inference.finish(undefined);
    if (problems[0] !== undefined) return problems[0];
    for (const message of [...leftOut, ...renamed]) {
      if (!this.leftOut.has(message)) this.onLeftOut(message);
      this.leftOut.add(message);
    }
    const found = new Map(columns.map(({ field }) => [field.name, field]));
    const known = this.fields.map((field) => ({ ...field, type: found.get(field.name)?.type ?? field.type }));
    for (const { name } of known) found.delete(name);
    const isOther = known.some(({ type }, i) => type !== this.fields[i]!.type);
    if (isOther || found.size > 0) this.fields = [...known, ...found.values()];
    return undefined;
  }
}

/** The definition with these fields instead of its own. */
export function withFields(definition: AgentDefinition, inferred: readonly InferredField[]): AgentDefinition {
  const fields = inferred.map(({ name, type, column: source, unit }) => ({ name, type, source, unit }));
  return { ...definition, fields, schema: schemaOf(fields, true) };
}

/** Writes the columns as the section `fields` of an agent's file. */
export function fieldsYaml(columns: readonly InferredColumn[]): string[] {
  return ['fields:', ...columns.flatMap(({ field }) => fieldLines(field))];
}

/** Writes a field as an element of the section `fields`. */
export function fieldLines({ name, type, column, unit, format }: InferredField): string[] {
  const parts = [
    `name: ${yamlText(name)}`,
    ...(type === 'string' || format !== undefined ? [] : [`type: ${type}`]),
    ...(column === name ? [] : [`source: ${yamlText(column)}`]),
    ...(unit === undefined ? [] : [`unit: ${unit}`]),
    ...(format === undefined ? [] : [`timestamp: { format: ${yamlText(format)} }`]),
  ];
  const line = `  - { ${parts.join(', ')} }`;
  if (line.length <= 80) return [line];
  return parts.map((part, i) => `  ${i === 0 ? '-' : ' '} ${part}`);
}

/** Options of growing an agent's fields. */
export interface GrowingFieldsOptions {
  readonly definition: AgentDefinition;
  readonly archive: ArchiveInput;
  readonly log: Pick<CollectLog, 'warn'>;
  /** Object storage for `s3://` paths. */
  readonly objects?: ObjectStorage | undefined;
  /** Adds fields to the agent. */
  readonly redefine: (definition: AgentDefinition) => Promise<void>;
}

/**
 * The fields of an agent while its files are imported. Where the agent's fields are the columns of its files, a file with
 * new columns adds fields.
 */
export class GrowingFields {
  private readonly growth: FieldGrowth;
  private readonly footers: FileFooters;
  private current: AgentDefinition;

  constructor(private readonly options: GrowingFieldsOptions) {
    const { definition, log } = options;
    this.growth = new FieldGrowth(definition, (message) => log.warn({ agent: definition.name }, message));
    this.footers = new FileFooters(
      options.objects,
      definition.fields.map(({ source }) => source),
    );
    this.current = options.definition;
  }

  /** The agent with its current fields. */
  get definition(): AgentDefinition {
    return this.current;
  }

  /**
   * Adds fields for the columns of a file. Returns why the file can't be stored where its columns do not agree with the
   * fields. Read errors are reported later, by the import of the file.
   */
  async take(file: FoundFile, signal: AbortSignal | undefined): Promise<string | undefined> {
    if (!this.options.archive.infersFields) return undefined;
    const footers = await this.footers.read([file], signal);
    this.footers.keep([file]);
    const { refused, definition } = this.growth.take([file], footers);
    if (definition !== undefined) {
      await this.options.redefine(definition);
      this.current = definition;
    }
    return refused[0]?.message;
  }
}
