import { setImmediate } from 'node:timers/promises';
import { isLogstrataError, LogstrataError, type RowRanges } from '../../engine/index.js';
import { fieldTypeOf } from './column-facts.js';
import { damagedAt, decodeZ85, readStoredVector, readVector } from './deletion-vector.js';
import { TableSchema, type TableColumn } from './table-schema.js';
import type { Table, TableDeletes, TableFile, TableState } from './table.js';
import type { TableFolder } from './table-folder.js';

const logFolder = '_delta_log';
const commitPattern = /^(\d{20})\.json$/;
/** A checkpoint: in one part, in several, or of the newer kind with a name of its own. */
const checkpointPattern = /^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)$/;

/** After so many files, others get their turn. */
const pauseFiles = 5000;

/** The features of the protocol that a reader has to know, and that are known here. */
const knownFeatures = new Set([
  'columnMapping',
  'deletionVectors',
  'timestampNtz',
  'typeWidening',
  'typeWidening-preview',
  'v2Checkpoint',
  'vacuumProtocolCheck',
]);

type Json = Readonly<Record<string, unknown>>;

/** The actions of a commit or checkpoint: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#actions */
interface Actions {
  readonly adds: Json[];
  readonly removes: Json[];
  readonly sidecars: Json[];
  metaData?: Json;
  protocol?: Json;
}

/** A whole checkpoint: its version, and the paths of its parts. */
interface Checkpoint {
  readonly version: number;
  readonly names: readonly string[];
}

/** A Delta table, read from its log. */
export class DeltaTable implements Table {
  private version = -1;
  private files = new Map<string, TableFile>();
  private schema: TableSchema | undefined;

  /** @param at the version that is wanted; undefined for the newest */
  constructor(
    private readonly folder: TableFolder,
    private readonly at: string | undefined,
    private readonly filesMax: number,
  ) {}

  async look(): Promise<TableState> {
    try {
      if (this.at === undefined || this.version < 0) await this.readOn();
    } catch (error) {
      if (isLogstrataError(error)) throw error;
      throw this.broken(`has a log that can't be read: ${(error as Error).message}`);
    }
    return { version: `version ${this.version}`, schema: this.schema!, files: this.files.values() };
  }

  private async readOn(): Promise<void> {
    const names = await this.folder.names(logFolder);
    const commits = new Set(names.map((name) => Number(commitPattern.exec(name)?.[1] ?? -1)));
    const checkpoints = wholeCheckpoints(names);
    let newest = checkpoints.at(-1)?.version ?? -1;
    for (const version of commits) newest = Math.max(newest, version);
    const wanted = this.at === undefined ? newest : Number(this.at);
    if (newest < 0) throw this.broken(`has no commit`);
    if (wanted > newest) throw this.broken(`has no version ${wanted}: its newest is ${newest}`);
    if (this.version === wanted) return;
    const isFirst = this.version > wanted || !commits.has(this.version + 1) || this.version < 0;
    if (isFirst)
      await this.begin(
        checkpoints.filter(({ version }) => version <= wanted),
        commits,
      );
    await this.follow(wanted, commits, isFirst);
  }

  /** Begins with the newest checkpoint that can be read; or with the first commit, if that is still there. */
  private async begin(checkpoints: readonly Checkpoint[], commits: ReadonlySet<number>): Promise<void> {
    let failure: unknown;
    for (const checkpoint of checkpoints.toReversed()) {
      try {
        await this.load(checkpoint);
        if (this.schema !== undefined) return;
        throw this.broken(`has a checkpoint without a schema: ${checkpoint.names[0]!}`);
      } catch (error) {
        failure ??= error;
      }
    }
    await this.load(undefined);
    if (failure !== undefined && !commits.has(0)) throw failure;
  }

  private async load(checkpoint: Checkpoint | undefined): Promise<void> {
    this.files.clear();
    this.schema = undefined;
    this.version = -1;
    for (const name of checkpoint?.names ?? []) {
      const sidecars = await this.take(`${logFolder}/${name}`);
      for (const { path } of sidecars) {
        const named = textOf(path, 'the path of a part of the checkpoint');
        await this.take(`${logFolder}/_sidecars/${named.split('/').at(-1)!}`);
      }
    }
    this.version = checkpoint?.version ?? -1;
  }

  private async follow(wanted: number, commits: ReadonlySet<number>, isFirst: boolean): Promise<void> {
    let hasData = false;
    while (this.version < wanted) {
      const next = this.version + 1;
      const name = `${logFolder}/${String(next).padStart(20, '0')}.json`;
      if (!commits.has(next))
        throw this.broken(`lacks the commit ${name}, without which version ${wanted} is not known`);
      const actions = await this.actionsOf(name);
      const isRewrite = actions.removes.length > 0 && [...actions.adds, ...actions.removes].every(isOldData);
      if (isRewrite && hasData && !isFirst) return;
      // If the commit turns out to be broken, the log is read anew.
      this.version = -1;
      await this.apply(actions, isRewrite && !isFirst);
      hasData ||= !isRewrite && actions.adds.length > 0;
      this.version = next;
    }
    if (this.schema === undefined) throw this.broken('has no schema in its log');
  }

  /** Takes the actions of a part of a checkpoint. Returns the sidecars that it names. */
  private async take(name: string): Promise<readonly Json[]> {
    const actions = await this.actionsOf(name);
    await this.apply({ ...actions, removes: [] }, false);
    return actions.sidecars;
  }

  private async actionsOf(name: string): Promise<Actions> {
    const path = `${this.folder.root}/${name}`;
    const actions: Actions = { adds: [], removes: [], sidecars: [] };
    const note = (kind: string, value: unknown): void => {
      const action = value as Json;
      // What else is said of a file, such as statistics, is long.
      const { path, partitionValues, dataChange, deletionVector } = action;
      if (kind === 'add') actions.adds.push({ path, partitionValues, dataChange, deletionVector });
      else if (kind === 'remove') actions.removes.push(action);
      else if (kind === 'sidecar') actions.sidecars.push(action);
      else if (kind === 'metaData' || kind === 'protocol') actions[kind] = action;
      if (actions.adds.length > this.filesMax) throw this.broken(`has more than ${this.filesMax} files`);
    };
    const kinds = ['add', 'metaData', 'protocol', 'sidecar'];
    try {
      if (name.endsWith('.parquet'))
        await this.folder.rows(path, kinds, (values) =>
          values.forEach((text, i) => text !== null && note(kinds[i]!, JSON.parse(text))),
        );
      else
        await this.folder.lines(path, (line) => {
          for (const [kind, value] of Object.entries(JSON.parse(line) as Json)) note(kind, value);
        });
    } catch (error) {
      if (isLogstrataError(error)) throw error;
      throw new LogstrataError('damaged', `${path} is no part of a Delta log: ${(error as Error).message}`, {
        path,
      });
    }
    return actions;
  }

  private async apply({ adds, removes, metaData, protocol }: Actions, isRewritten: boolean): Promise<void> {
    if (protocol !== undefined) this.require(protocol);
    if (metaData !== undefined) this.schema = schemaOf(metaData);
    const before = new Map<string, TableFile | undefined>();
    for (const { path: named } of removes) {
      const path = this.pathOf(named);
      before.set(path, this.files.get(path));
      this.files.delete(path);
    }
    for (const { path: named, partitionValues, deletionVector } of adds) {
      const path = this.pathOf(named);
      const values = (partitionValues ?? {}) as Record<string, string | null>;
      // A file that is added again, with other statistics or deleted rows, is the same.
      const known = this.files.get(path) ?? before.get(path);
      const deletes = this.deletesOf(deletionVector as Json | null | undefined);
      const stamp = known?.stamp === undefined ? {} : { stamp: known.stamp };
      const own = { path, values, deletes, isRewritten: known?.isRewritten ?? isRewritten, ...stamp };
      this.files.set(path, own);
      if (this.files.size % pauseFiles === 0) await setImmediate();
      if (this.files.size > this.filesMax) throw this.broken(`has more than ${this.filesMax} files`);
    }
  }

  private pathOf(named: unknown): string {
    const text = textOf(named, 'the path of a file');
    return this.folder.place(decodeURIComponent(text));
  }

  /** The deleted rows that the descriptor of a deletion vector means. */
  private deletesOf(descriptor: Json | null | undefined): TableDeletes | undefined {
    if (descriptor === undefined || descriptor === null) return undefined;
    const { storageType, pathOrInlineDv, offset, sizeInBytes } = descriptor;
    const named = textOf(pathOrInlineDv, 'a deletion vector');
    const id = `${String(storageType)}${named}${offset === undefined || offset === null ? '' : `@${Number(offset)}`}`;
    const length = Number(sizeInBytes);
    if (storageType === 'i') {
      const bytes = (): Uint8Array => decodeZ85(named).subarray(0, length);
      return { id, read: async () => damagedAt(this.folder.root, () => readVector(bytes())) };
    }
    const path = this.folder.place(storageType === 'u' ? vectorName(named) : decodeURIComponent(named));
    const read = async (): Promise<RowRanges> => {
      const bytes = await this.folder.read(path, Number(offset ?? 1), length + 8);
      return damagedAt(path, () => readStoredVector(bytes));
    };
    return { id, read };
  }

  private require({ minReaderVersion, readerFeatures }: Json): void {
    const features = Array.isArray(readerFeatures) ? readerFeatures.map(String) : [];
    const unknown = features.filter((feature) => !knownFeatures.has(feature));
    if (unknown.length > 0) throw this.unsupported(`needs readers that know ${unknown.join(', ')}`);
    if (Number(minReaderVersion) > 3)
      throw this.unsupported(`needs readers of version ${String(minReaderVersion)}`);
  }

  private broken(problem: string): LogstrataError {
    const path = `${this.folder.root}/${logFolder}`;
    return new LogstrataError('damaged', `the Delta table ${this.folder.root} ${problem}`, { path });
  }

  private unsupported(problem: string): LogstrataError {
    const { root } = this.folder;
    return new LogstrataError('unsupported', `the Delta table ${root} ${problem}, which is not supported`, {
      path: root,
    });
  }
}

/** The name of a file of deletion vectors: its UUID is written in Z85, behind the folder. */
function vectorName(text: string): string {
  const uuid = Buffer.from(decodeZ85(text.slice(-20))).toString('hex');
  const parts = [uuid.slice(0, 8), uuid.slice(8, 12), uuid.slice(12, 16), uuid.slice(16, 20), uuid.slice(20)];
  const folder = text.slice(0, -20);
  return `${folder === '' ? '' : `${folder}/`}deletion_vector_${parts.join('-')}.bin`;
}

function isOldData({ dataChange }: Json): boolean {
  return dataChange === false;
}

/** The checkpoints of which all parts are there, ascending. */
function wholeCheckpoints(names: readonly string[]): Checkpoint[] {
  const parts = new Map<string, string[]>();
  for (const name of names) {
    const [, version, part, of] = checkpointPattern.exec(name) ?? [];
    if (version === undefined) continue;
    const key = part === undefined ? name : `${version} ${of!}`;
    parts.set(key, [...(parts.get(key) ?? []), name]);
  }
  return [...parts]
    .filter(([key, { length }]) => !key.includes(' ') || Number(key.split(' ')[1]) === length)
    .map(([key, own]) => ({ version: Number(key.slice(0, 20)), names: own.toSorted() }))
    .toSorted((a, b) => a.version - b.version);
}

/** The columns by the schema of the action `metaData`. */
function schemaOf({ schemaString, partitionColumns, configuration, format }: Json): TableSchema {
  const { fields = [] } = JSON.parse(textOf(schemaString, 'the schema')) as {
    readonly fields?: readonly Json[];
  };
  const mode = ((configuration ?? {}) as Json)['delta.columnMapping.mode'] ?? 'none';
  const { provider = 'parquet' } = (format ?? {}) as Json;
  if (provider !== 'parquet' || !['none', 'name', 'id'].includes(String(mode)))
    throw new LogstrataError(
      'unsupported',
      `a Delta table of ${String(provider)} files with column mapping ${String(mode)} is not supported`,
    );
  const partitions = new Set((partitionColumns ?? []) as string[]);
  return new TableSchema(
    fields.map(({ name, type, metadata }): TableColumn => {
      const own = (metadata ?? {}) as Json;
      const column = textOf(name, 'the name of a column');
      const stored =
        mode === 'none'
          ? column
          : textOf(own['delta.columnMapping.physicalName'], `the name of the column "${column}" in files`);
      const id = mode === 'id' ? { id: Number(own['delta.columnMapping.id']) } : {};
      const partition = partitions.has(column) ? { partition: 'always' as const } : {};
      return { name: column, type: fieldTypeOf(type), stored, ...id, ...partition };
    }),
  );
}

function textOf(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new Error(`${what} is no text: ${JSON.stringify(value) ?? 'missing'}`);
}
