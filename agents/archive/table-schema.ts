import { crc32 } from 'node:zlib';
import { conversionOf, type FieldType } from '../../engine/index.js';
import type { ColumnFacts } from './column-facts.js';

/** A column of a table. */
export interface TableColumn {
  readonly name: string;
  readonly type: FieldType;
  /** Its name in the files; or its field id there, by which it is found in all files that have such ids. */
  readonly stored: string;
  readonly id?: number | undefined;
  /** Set where the log gives one value for a whole file; `always` where files do not have the column at all. */
  readonly partition?: 'always' | 'if missing' | undefined;
}

/** How the columns of a table are read from a file. */
export interface TableReading {
  /** The columns of the table, with what the file says about them. */
  readonly columns: readonly ColumnFacts[];
  /** See `FileToAttach`. */
  readonly renamed: Readonly<Record<string, string>>;
  /** Columns of the table that the file lacks, although it has another column of the same name. */
  readonly hidden: readonly string[];
}

/** The columns of a table. */
export class TableSchema {
  /** Equal for schemas by which files are read in the same way. */
  readonly id: string;
  private readonly readings = new Map<readonly ColumnFacts[], TableReading>();

  constructor(readonly columns: readonly TableColumn[]) {
    const keys = columns.filter(({ name, stored, id }) => id !== undefined || stored !== name);
    const text = JSON.stringify(keys.map(({ name, stored, id }) => [name, stored, id]));
    this.id = keys.length === 0 ? 'names' : crc32(text).toString(16);
  }

  /** How a file with these columns is read. One object for each list of columns. */
  reading(columns: readonly ColumnFacts[]): TableReading {
    const known = this.readings.get(columns) ?? this.read(columns);
    this.readings.set(columns, known);
    return known;
  }

  private read(columns: readonly ColumnFacts[]): TableReading {
    // A log without a schema leaves the columns to the files.
    if (this.columns.length === 0) return { columns, renamed: {}, hidden: [] };
    const hasIds = columns.some(({ id }) => id !== undefined);
    const renamed: Record<string, string> = {};
    const hidden: string[] = [];
    const facts = this.columns.map((column): ColumnFacts => {
      const { name, type, stored, id, partition } = column;
      const own = columns.find((each) =>
        hasIds && id !== undefined ? each.id === id : each.name === stored,
      );
      if (partition === 'always' || (own === undefined && partition !== undefined))
        return { name, type, way: 'fast', stored: 'a value of the partition', reason: '' };
      if (own === undefined && columns.some((each) => each.name === name)) hidden.push(name);
      if (own === undefined) return { name, type, way: 'fast', stored: 'missing', reason: '', isNull: true };
      if (own.name !== name) renamed[name] = own.name;
      return { ...own, name, type: conversionOf(own.type, type) === 'toNull' ? own.type : type };
    });
    // Parts of structures that place records are asked for by the names that the files have.
    const parts = columns.filter(({ name }) => facts.some((fact) => name.startsWith(`${fact.name}.`)));
    return { columns: [...facts, ...parts], renamed, hidden };
  }

  /** Values that the log gives for a whole file, by the names of the table; `values` has them by `stored`. */
  constants(
    values: Readonly<Record<string, string | null>>,
    { columns, hidden }: Pick<TableReading, 'columns' | 'hidden'>,
  ): Record<string, string | null> {
    const constants: Record<string, string | null> = Object.fromEntries(hidden.map((name) => [name, null]));
    this.columns.forEach(({ name, type, stored, partition }, i) => {
      if (partition === undefined || columns[i]!.stored !== 'a value of the partition') return;
      const text = values[stored] ?? '';
      constants[name] = text === '' ? null : type === 'time' ? isoTime(text) : text;
    });
    return constants;
  }
}

/** A time in the form that fields read. Without a zone it is UTC. */
function isoTime(text: string): string {
  const time = text.replace(' ', 'T');
  return /T[\d:.]+$/.test(time) ? `${time}Z` : time;
}
