import { fieldsMax, nearName, type FieldType, type TimeUnit } from '../../engine/index.js';
import type { FieldDefinition } from '../definition/definition.js';
import { joinNames } from '../definition/yaml-section.js';
import type { ColumnFacts, Footer } from './file-footers.js';
import type { FoundFile } from './found-files.js';

/** A field made of a column of an archive's files, or of a key of their folders. */
export interface InferredField {
  readonly name: string;
  readonly type: FieldType;
  /** Name of the column or key. */
  readonly column: string;
  readonly unit?: TimeUnit | undefined;
}

/** One way in which files store a column. */
export interface ColumnVariant extends ColumnFacts {
  /** Number of files that store it so. */
  files: number;
  /** Path of one of these files. */
  readonly path: string;
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
  /** Why the columns can't be the fields of an agent. */
  readonly problems: readonly string[];
}

/** Limit on distinct columns, to bound the memory where all files have different ones. Long before it, the number of fields is an error. */
const columnsMax = 10 * fieldsMax;

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
  type: FieldType;
  /** The first file that has the column; empty where the agent has the field already. */
  readonly path: string;
}

/** A key of `key=value` folders. A null or empty value (`key=`) is null for any type but text. */
interface KnownKey {
  readonly key: string;
  /** The first file in such a folder. */
  readonly path: string;
  /** The types that can't hold the values of all folders, each with a file in a folder with such a value. */
  readonly misfits: Map<FieldType, string>;
  /** Whether no folder so far has a value. */
  isEmpty: boolean;
}

/** What a folder's value must look like to be of a type. Text is always possible. */
const keyPatterns: readonly (readonly [FieldType, RegExp])[] = [
  ['int', /^-?\d{1,18}$/],
  ['float', /^-?\d{1,18}(?:\.\d{1,18})?$/],
  ['time', /^\d{4}-\d\d-\d\d/],
  ['bool', /^(?:true|false)$/],
];

/**
 * Makes the fields of an agent from the columns of its files, which are added one by one. A column that some files lack is
 * null there. Integers and floats together give floats; any other difference in type is a problem, and so are two columns
 * for the same field. In a file in a `key=value` folder, the key replaces a column of the same name. If other files have
 * that column without such a folder, the column gives the type, and a folder value that is not of that type is a problem.
 */
export class FieldInference {
  private readonly columns = new Map<string, KnownColumn>();
  private readonly keys = new Map<string, KnownKey>();
  /** Names of the fields that the agent has already, by column. */
  private readonly names = new Map<string, string>();
  /** The ways in which files store a column, by column. */
  private readonly stored = new Map<string, ColumnVariant[]>();
  private readonly problems = new Set<string>();
  /** Cache: what was made of a list of columns, by the keys that replaced some of them. */
  private readonly seen = new Map<readonly ColumnFacts[], Map<string, readonly ColumnVariant[]>>();

  /** Begins with the fields that an agent has already. They are not changed; files may add others. */
  constructor(known: readonly InferredField[] = []) {
    for (const { name, column, type, unit } of known) {
      this.columns.set(name, { column, type, unit, path: '' });
      this.names.set(column, name);
    }
  }

  /** Adds a file. */
  add({ path, keys }: FoundFile, { columns }: Footer): void {
    for (const [key, value] of keys) this.addKey(key, value, path);
    const replaced = this.replacedBy(keys, columns);
    const seen = this.seen.get(columns) ?? new Map<string, readonly ColumnVariant[]>();
    this.seen.set(columns, seen);
    const combination = [...replaced].join('/');
    const known = seen.get(combination);
    if (known !== undefined) {
      for (const variant of known) variant.files++;
      return;
    }
    const variants: ColumnVariant[] = [];
    const names = new Set<string>();
    for (const column of columns) {
      if (names.has(column.name)) this.problems.add(twice(column.name, path));
      names.add(column.name);
      if (column.name === cursorColumn || this.stored.size > columnsMax) continue;
      variants.push(this.variantOf(column, path));
      if (!replaced.has(this.nameOf(column.name))) this.addColumn(column, path);
    }
    seen.set(combination, variants);
  }

  /** Names of the fields that both a file's folders and its columns give. */
  private replacedBy(keys: FoundFile['keys'], columns: readonly ColumnFacts[]): ReadonlySet<string> {
    if (keys.size === 0) return new Set();
    const names = new Set([...keys.keys()].map((key) => this.nameOf(key)));
    return new Set(columns.map(({ name }) => this.nameOf(name)).filter((name) => names.has(name)));
  }

  /** Name of the field of a column or key. */
  private nameOf(column: string): string {
    return this.names.get(column) ?? fieldNameOf(column);
  }

  private addKey(key: string, value: string | null, path: string): void {
    const name = this.nameOf(key);
    const known = this.keys.get(name) ?? { key, path, misfits: new Map<FieldType, string>(), isEmpty: true };
    if (name === '') {
      this.problems.add(`${path}: the key ${JSON.stringify(key)} of its folder is not a valid field name`);
      return;
    }
    this.keys.set(name, known);
    if (known.key !== key) this.problems.add(meeting(name, known.key, known.path, key, path));
    if (value === null || value === '') return;
    known.isEmpty = false;
    for (const [type, pattern] of keyPatterns)
      if (!pattern.test(value) && !known.misfits.has(type)) known.misfits.set(type, path);
  }

  private addColumn(column: ColumnFacts, path: string): void {
    const name = this.nameOf(column.name);
    if (name === '') {
      this.problems.add(
        `${path}: the column ${JSON.stringify(column.name)} is not a valid field name: list the fields, with a source for this one`,
      );
      return;
    }
    const known = this.columns.get(name);
    if (known === undefined) {
      this.columns.set(name, { column: column.name, type: column.type, path });
      return;
    }
    if (known.column !== column.name) {
      this.problems.add(meeting(name, known.column, known.path, column.name, path));
      return;
    }
    if (known.unit !== undefined && isNumber(column.type)) return;
    const type = widened(known.type, column);
    const before = this.stored.get(column.name)?.find((variant) => variant.path === known.path);
    if (type === undefined) this.problems.add(clash(column, path, known, before));
    else known.type = type;
  }

  private variantOf(column: ColumnFacts, path: string): ColumnVariant {
    const known = this.stored.get(column.name) ?? [];
    this.stored.set(column.name, known);
    const same = known.find(({ stored, reason }) => stored === column.stored && reason === column.reason);
    if (same !== undefined) {
      same.files++;
      return same;
    }
    const variant = { ...column, files: 1, path };
    known.push(variant);
    return variant;
  }

  /** The columns and keys of the files, with the ways in which they are stored. */
  variants(): ReadonlyMap<string, readonly ColumnVariant[]> {
    const found = new Map<string, readonly ColumnVariant[]>(this.stored);
    for (const { key } of this.keys.values()) found.set(key, []);
    return found;
  }

  /**
   * Returns the fields. `time` names the field that places records, by its name or that of its column; without it, that is
   * the first field of type time.
   */
  finish(time: string | undefined): InferredFields {
    const columns: InferredColumn[] = [];
    for (const [name, { column, type, unit }] of this.columns) {
      if (this.keys.has(name)) continue;
      const field = unit === undefined ? { name, type, column } : { name, type, column, unit };
      columns.push({ field, variants: this.stored.get(column) ?? [] });
    }
    for (const [name, key] of this.keys) columns.push(this.columnOfKey(name, key));
    if (columns.length > fieldsMax)
      this.problems.add(
        `the files have ${columns.length} columns, but an agent has at most ${fieldsMax} fields: list the wanted fields`,
      );
    const placing = this.placing(columns, time);
    if (placing !== undefined) columns.unshift(...columns.splice(columns.indexOf(placing), 1));
    return { columns, problems: [...this.problems] };
  }

  private columnOfKey(name: string, { key, path, misfits, isEmpty }: KnownKey): InferredColumn {
    const used = this.columns.get(name);
    if (used === undefined) {
      const type = misfits.has('int') || isEmpty ? 'string' : 'int';
      return { field: { name, type, column: key }, variants: [] };
    }
    if (used.column !== key) this.problems.add(meeting(name, used.column, used.path, key, path));
    const variants = this.stored.get(key) ?? [];
    const { type, unit } = used;
    const misfit = misfits.get(type);
    // An int field that the agent has already may come from the key of other folders, whose values can also be taken as
    // text. Those of a column can't.
    if (misfit !== undefined && type === 'int' && used.path === '')
      return { field: { name, type: 'string', column: key }, variants };
    if (misfit !== undefined) this.problems.add(clashOfKey(key, misfit, used));
    return { field: { name, type, column: key, ...(unit === undefined ? {} : { unit }) }, variants };
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

/** The fields as an agent's file would list them. */
export function definitionsOf({ columns }: InferredFields): FieldDefinition[] {
  return columns.map(({ field: { name, type, column } }) => ({ name, type, source: column }));
}

/** The type that holds the values of a field so far and those of a column; undefined where there is none. */
function widened(known: FieldType, { type, isUnsigned64 }: ColumnFacts): FieldType | undefined {
  if (known === type) return known;
  // Unsigned 64-bit integers are text as soon as one file has some that are too large for an integer.
  if (isUnsigned64 === true && (known === 'string' || (known === 'int' && type === 'string')))
    return 'string';
  return isNumber(known) && isNumber(type) ? 'float' : undefined;
}

/** Whether values of a type are numbers, which a unit turns into times. */
export function isNumber(type: FieldType): boolean {
  return type === 'int' || type === 'float';
}

function meeting(name: string, a: string, aPath: string, b: string, bPath: string): string {
  const first = aPath === bPath || aPath === '' ? '' : ` (${aPath})`;
  const columns = `${JSON.stringify(a)}${first} and ${JSON.stringify(b)}`;
  return `${bPath}: the columns ${columns} would both become the field "${name}": list the fields, with a source for each`;
}

function twice(column: string, path: string): string {
  return `${path}: several columns have the name ${JSON.stringify(column)}: list the fields without it`;
}

function placeOf({ path }: KnownColumn): string {
  return path === '' ? 'in the other files' : `in ${path}`;
}

function clash(
  { name, type, stored }: ColumnFacts,
  path: string,
  known: KnownColumn,
  before: ColumnVariant | undefined,
): string {
  const other = before === undefined ? known.type : `${known.type} (${before.stored})`;
  return `${path}: the column ${JSON.stringify(name)} is ${type} (${stored}) here and ${other} ${placeOf(known)}: list the fields without it, or make two agents of it`;
}

function clashOfKey(key: string, path: string, known: KnownColumn): string {
  return `${path}: the key ${JSON.stringify(key)} of its folder has a value that is not of type ${known.type}, as the column is ${placeOf(known)}: list the fields without it, or make two agents of it`;
}

function noTime(time: string, field: InferredField | undefined, times: readonly InferredColumn[]): string {
  const names = times.map((column) => column.field.name);
  const there = `the columns of type time are ${joinNames(names, 'and') || 'none'}`;
  if (field === undefined)
    return `time names the column "${time}", which no file has${nearName(time, names)}: ${there}`;
  const advice = isNumber(field.type) ? '; list the fields, with a unit for this one' : '';
  return `time names the column "${time}", which is of type ${field.type}: ${there}${advice}`;
}
