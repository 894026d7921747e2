import { parquetWriteBuffer } from 'hyparquet-writer';
import type { SchemaElement } from 'hyparquet';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive, Query } from '../../engine/index.js';
import { completed } from '../../server/cli/opened-archive.js';
import { queryDuckDb } from '../oracle/duckdb.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { storedVector, vectorBytes, z85 } from './vector-bytes.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

/** The start of the hour in which records of tests are. */
export const hour = Date.UTC(2026, 0, 1);

export type Row = Readonly<Record<string, unknown>>;

/** A column of a table: its type, and how it is stored. */
export interface Column {
  /** As Delta's schema has it. */
  readonly type: string;
  /** Name in the files; the table's name if absent. */
  readonly physical?: string;
  readonly id?: number;
  readonly partition?: true;
  /** How files store it; as `type` says if absent. */
  readonly stored?: string;
}

const elements: Readonly<Record<string, Omit<SchemaElement, 'name'>>> = {
  timestamp: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
  integer: { type: 'INT32' },
  long: { type: 'INT64' },
  float: { type: 'FLOAT' },
  double: { type: 'DOUBLE' },
  string: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  boolean: { type: 'BOOLEAN' },
  'decimal(10,2)': { type: 'INT64', converted_type: 'DECIMAL', precision: 10, scale: 2 },
  'decimal(18,2)': { type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale: 2 },
};

/** The bytes of a Parquet file with rows of a table's columns. */
export function parquetOf(columns: Readonly<Record<string, Column>>, rows: readonly Row[]): Uint8Array {
  const stored = Object.entries(columns).filter(([, { partition }]) => partition !== true);
  const schema = [
    { name: 'root', num_children: stored.length },
    ...stored.map(([name, { type, stored: as = type, physical = name, id }]) => ({
      ...elements[as]!,
      name: physical,
      repetition_type: 'OPTIONAL' as const,
      ...(id === undefined ? {} : { field_id: id }),
    })),
  ] as SchemaElement[];
  const columnData = stored.map(([name, { type, stored: as = type, physical = name }]) => ({
    name: physical,
    data: rows.map((row) => {
      const value = row[name] ?? null;
      if (as === 'timestamp' && typeof value === 'number') return new Date(value);
      return as === 'long' && typeof value === 'number' ? BigInt(value) : value;
    }),
  }));
  return new Uint8Array(parquetWriteBuffer({ schema, columnData }));
}

const plainKinds = {
  metaData:
    'STRUCT(id VARCHAR, format STRUCT(provider VARCHAR), "schemaString" VARCHAR, "partitionColumns" VARCHAR[], configuration MAP(VARCHAR, VARCHAR))',
  protocol: 'STRUCT("minReaderVersion" INTEGER, "minWriterVersion" INTEGER, "readerFeatures" VARCHAR[])',
};

/** The structure of an action, for DuckDB's `from_json`. */
function structureOf(kind: string): string {
  const map = 'MAP(VARCHAR,VARCHAR)';
  const structures: Readonly<Record<string, object>> = {
    add: { path: 'VARCHAR', partitionValues: map, dataChange: 'BOOLEAN' },
    metaData: {
      id: 'VARCHAR',
      format: { provider: 'VARCHAR' },
      schemaString: 'VARCHAR',
      partitionColumns: ['VARCHAR'],
      configuration: map,
    },
    protocol: { minReaderVersion: 'INTEGER', minWriterVersion: 'INTEGER', readerFeatures: ['VARCHAR'] },
  };
  return JSON.stringify(structures[kind]);
}

/** A Delta table that a test writes by hand, and an agent `web` that answers from it. */
export class DeltaLake {
  readonly folder = mkdtempSync(join(tmpdir(), 'logstrata-delta-'));
  readonly root = join(this.folder, 'table');
  version = -1;
  now = hour + 1_000_000_000;
  #files = 0;
  #archive: Archive | undefined;
  #attaching: ArchiveAttaching | undefined;
  #store: AgentStore | undefined;
  #directory = new MemoryDirectory();

  constructor(
    public columns: Readonly<Record<string, Column>>,
    private readonly options: { readonly mode?: string; readonly agent?: string } = {},
  ) {
    onTestFinished(async () => {
      await this.close();
      rmSync(this.folder, { recursive: true, force: true });
    });
    mkdirSync(join(this.root, '_delta_log'), { recursive: true });
    this.commit(this.protocol(), this.metadata());
  }

  protocol(features: readonly string[] = ['columnMapping']): object {
    return { protocol: { minReaderVersion: 3, minWriterVersion: 7, readerFeatures: features } };
  }

  metadata(): object {
    const { mode = 'none' } = this.options;
    const fields = Object.entries(this.columns).map(([name, { type, physical = name, id = 0 }]) => ({
      name,
      type,
      nullable: true,
      metadata: {
        'delta.columnMapping.physicalName': physical,
        'delta.columnMapping.id': id,
      },
    }));
    const partitionColumns = Object.entries(this.columns).flatMap(([name, { partition }]) =>
      partition ? [name] : [],
    );
    const configuration = mode === 'none' ? {} : { 'delta.columnMapping.mode': mode };
    const schemaString = JSON.stringify({ type: 'struct', fields });
    return {
      metaData: {
        id: 't',
        format: { provider: 'parquet', options: {} },
        schemaString,
        partitionColumns,
        configuration,
      },
    };
  }

  /** Writes a data file. Returns the action that adds it. */
  add(
    rows: readonly Row[],
    {
      values = {},
      dataChange = true,
      name = '',
    }: { values?: Record<string, string | null>; dataChange?: boolean; name?: string } = {},
  ): { add: { path: string; dataChange: boolean } } {
    const path = `${name}part-${String(++this.#files).padStart(5, '0')} x.parquet`;
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), parquetOf(this.columns, rows));
    return {
      add: {
        path: encodeURI(path),
        dataChange,
        partitionValues: values,
        size: 1,
        modificationTime: 1,
        stats: '{"numRecords":1}',
      } as never,
    };
  }

  remove({ add: { path } }: { add: { path: string } }, dataChange = true): object {
    return { remove: { path, dataChange, deletionTimestamp: 1 } };
  }

  /**
   * Deletes rows of a file by a deletion vector: inline, or in a file with another one before it. `rows` are all that are deleted so far. Returns
   * the actions to commit, of which the last adds the file.
   */
  deleting({ add }: ReturnType<DeltaLake['add']>, rows: readonly number[]): object[] {
    const vector = vectorBytes(rows, this.version % 3 === 0);
    const common = { sizeInBytes: vector.length, cardinality: rows.length };
    let descriptor: object = { storageType: 'i', pathOrInlineDv: z85(vector), ...common };
    if (this.version % 2 === 0) {
      const id = Buffer.alloc(16, ++this.#files);
      const [a, b, c, d, e] = [
        [0, 4],
        [4, 6],
        [6, 8],
        [8, 10],
        [10, 16],
      ].map(([from, to]) => id.toString('hex', from, to));
      const before = storedVector(vectorBytes([1], false));
      mkdirSync(join(this.root, 'ab'), { recursive: true });
      const path = join(this.root, 'ab', `deletion_vector_${a}-${b}-${c}-${d}-${e}.bin`);
      writeFileSync(path, Buffer.concat([Buffer.from([1]), before, storedVector(vector)]));
      descriptor = { storageType: 'u', pathOrInlineDv: `ab${z85(id)}`, offset: 1 + before.length, ...common };
    }
    const action = { add: { ...add, dataChange: true, deletionVector: descriptor } };
    return [this.remove({ add }), action];
  }

  commit(...actions: readonly object[]): number {
    const name = `${String(++this.version).padStart(20, '0')}.json`;
    const lines = [{ commitInfo: { operation: 'TEST' } }, ...actions].map((action) => JSON.stringify(action));
    writeFileSync(join(this.root, '_delta_log', name), `${lines.join('\n')}\n`);
    return this.version;
  }

  /** Writes a checkpoint of the newest version. The newer kind has its files in a sidecar. */
  async checkpoint(
    kind: string,
    adds: readonly { readonly add: { readonly path: string } }[],
  ): Promise<void> {
    const add = 'STRUCT(path VARCHAR, "partitionValues" MAP(VARCHAR, VARCHAR), "dataChange" BOOLEAN)';
    const kinds = { add, ...plainKinds };
    const select = (own: string, action: object): string => {
      const json = JSON.stringify(action).replaceAll("'", "''");
      const cells = Object.entries(kinds).map(([name, type]) =>
        name === own
          ? `from_json('${json}', '${structureOf(name)}')::${type} AS "${name}"`
          : `NULL::${type} AS "${name}"`,
      );
      return `SELECT ${cells.join(', ')}`;
    };
    const head = [
      select('protocol', (this.protocol() as { protocol: object }).protocol),
      select('metaData', (this.metadata() as { metaData: object }).metaData),
    ];
    const files = adds.map((each) => select('add', each.add));
    const copy = (selects: readonly string[], path: string): Promise<unknown> =>
      queryDuckDb(`COPY (${selects.join(' UNION ALL ')}) TO '${path}' (FORMAT parquet)`);
    if (kind === 'one part') await copy([...head, ...files], this.log(this.version, 'checkpoint.parquet'));
    if (kind === 'two parts') {
      await copy(head, this.log(this.version, 'checkpoint.0000000001.0000000002.parquet'));
      await copy(files, this.log(this.version, 'checkpoint.0000000002.0000000002.parquet'));
    }
    if (kind !== 'the newer kind') return;
    mkdirSync(join(this.root, '_delta_log', '_sidecars'));
    await copy(files, join(this.root, '_delta_log', '_sidecars', 'x.parquet'));
    const lines = [
      { checkpointMetadata: { version: 1 } },
      this.protocol(),
      this.metadata(),
      { sidecar: { path: 'x.parquet' } },
    ];
    const path = this.log(this.version, 'checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json');
    writeFileSync(path, lines.map((line) => JSON.stringify(line)).join('\n'));
  }

  log(version: number, ending = 'json'): string {
    return join(this.root, '_delta_log', `${String(version).padStart(20, '0')}.${ending}`);
  }

  protected agentText(more: string): string {
    return `archive: { path: table, format: delta${more} }\n`;
  }

  get newestVersion(): string {
    return `version ${this.version}`;
  }

  definition(more = '') {
    const text = this.options.agent ?? this.agentText(more);
    return parseAgentFile(text, join(this.folder, 'web.yaml'));
  }

  /** Opens the archive as a server does. */
  async open(more = ''): Promise<AgentStore> {
    if (this.#store !== undefined) return this.#store;
    const archive = (this.#archive = await openOn(this.#directory, () => this.now));
    const definition = await completed(archive, this.definition(more));
    this.#store = await archive.agent('web', definition.schema);
    this.#attaching = new ArchiveAttaching({
      definition,
      archive: definition.archive!,
      store: this.#store,
      dataFolder: undefined,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      now: () => this.now,
      redefine: async (grown) => {
        this.#store = await archive.redefine('web', grown.schema, undefined);
      },
    });
    return this.#store;
  }

  get store(): AgentStore {
    return this.#store!;
  }

  get status() {
    return this.#attaching!.status();
  }

  /** Looks at the table once, and returns the problems. */
  async look(more = ''): Promise<string[]> {
    await this.open(more);
    this.now += 100_000;
    const { problems } = await this.#attaching!.round(new AbortController().signal);
    return problems.map(({ message }) => message);
  }

  /** The records of a query, with their cursors. */
  async page(query: Query): Promise<Row[]> {
    const text = await answer(this.store, query);
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Row]));
  }

  /** All records, without cursors unless these are wanted. */
  async rows(hasCursors = false): Promise<Row[]> {
    const rows = await this.page({ limit: 100_000, after: undefined, before: undefined, predicates: [] });
    return hasCursors ? rows : rows.map(({ _cursor, ...row }) => row);
  }

  /** Closes the archive of ours, as the end of a server does. */
  async close(): Promise<void> {
    await this.#archive?.close();
    this.#archive = this.#attaching = this.#store = undefined;
  }

  has(path: string): boolean {
    return existsSync(join(this.root, path));
  }
}
