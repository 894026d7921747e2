import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { avroBytes } from './avro-bytes.js';
import { DeltaLake, parquetOf } from './delta-table.js';
import { storedVector, vectorBytes } from './vector-bytes.js';

interface Added {
  readonly path: string;
  readonly values: Record<string, string | null>;
  readonly snapshotId: bigint;
  readonly version: number;
}

/** A file of deletes: of positions, or a deletion vector of one data file. */
interface DeleteFile {
  readonly path: string;
  readonly version: number;
  readonly of: string;
  readonly isEquality?: true;
  readonly vector?: { readonly offset: number; readonly length: number };
}

const manifestSchema = {
  type: 'record',
  name: 'manifest_entry',
  fields: [
    { name: 'status', type: 'int' },
    { name: 'snapshot_id', type: ['null', 'long'] },
    { name: 'sequence_number', type: ['null', 'long'] },
    {
      name: 'data_file',
      type: {
        type: 'record',
        name: 'r2',
        fields: [
          { name: 'content', type: 'int' },
          { name: 'file_path', type: 'string' },
          { name: 'file_format', type: 'string' },
          {
            name: 'partition',
            type: { type: 'record', name: 'r102', fields: [{ name: 'p', type: ['null', 'string'] }] },
          },
          { name: 'record_count', type: 'long' },
          { name: 'referenced_data_file', type: ['null', 'string'] },
          { name: 'content_offset', type: ['null', 'long'] },
          { name: 'content_size_in_bytes', type: ['null', 'long'] },
          { name: 'split_offsets', type: ['null', { type: 'array', items: 'long' }] },
        ],
      },
    },
  ],
};

const listSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    { name: 'manifest_path', type: 'string' },
    { name: 'content', type: 'int' },
    { name: 'sequence_number', type: 'long' },
    { name: 'added_snapshot_id', type: 'long' },
  ],
};

/** An Iceberg table that a test writes by hand, with the same steps as a Delta table. */
export class IcebergLake extends DeltaLake {
  declare format?: number;
  declare private live: Added[] | undefined;
  declare private deletes: DeleteFile[] | undefined;
  declare private snapshots: object[] | undefined;
  declare private schemas: object[] | undefined;

  protected override agentText(more: string): string {
    return `archive: { path: table, format: iceberg${more} }\n`;
  }

  /** The id of a version's snapshot: more than a number holds exactly. */
  snapshotOf(version: number): bigint {
    return 3_055_729_675_574_597_000n + BigInt(version);
  }

  override get newestVersion(): string {
    return `snapshot ${this.snapshotOf(this.version)}`;
  }

  override deleting({ add }: ReturnType<DeltaLake['add']>, rows: readonly number[]): object[] {
    const of = decodeURI(add.path);
    const version = this.version + 1;
    const name = `deletes-${version}-${this.deletes?.length ?? 0}`;
    const named = `${this.location}/${of}`;
    if (version % 2 === 0) {
      const stored = storedVector(vectorBytes(rows, true));
      writeFileSync(join(this.root, `${name}.puffin`), Buffer.concat([Buffer.from('PFA1'), stored]));
      const vector = { offset: 4, length: stored.length };
      // There is one vector for a file, which takes the place of what there was before.
      this.deletes = (this.deletes ?? []).filter((each) => each.of !== of);
      return [{ deletes: { path: `${name}.puffin`, version, of, vector } }, { add }];
    }
    const columns = { file_path: { type: 'string' }, pos: { type: 'long' } } as const;
    const positions = rows.map((pos) => ({ file_path: named, pos }));
    writeFileSync(join(this.root, `${name}.parquet`), parquetOf(columns, positions));
    return [{ deletes: { path: `${name}.parquet`, version, of } }, { add }];
  }

  /** Where the metadata says that the table is. */
  get location(): string {
    return 's3a://warehouse/db/table';
  }

  override commit(...actions: readonly object[]): number {
    const version = ++this.version;
    const id = this.snapshotOf(version);
    const steps = actions as readonly {
      deletes?: DeleteFile;
      add?: { path: string; dataChange: boolean; partitionValues: object };
      remove?: { path: string; dataChange: boolean };
    }[];
    const removed = new Set(steps.flatMap(({ remove }) => (remove ? [remove.path] : [])));
    const kept = (this.live ?? []).filter(({ path }) => !removed.has(path));
    const known = new Set(kept.map(({ path }) => path));
    const added = steps.flatMap(({ add }) =>
      add === undefined || known.has(add.path)
        ? []
        : [{ path: add.path, values: add.partitionValues as Added['values'], snapshotId: id, version }],
    );
    this.live = [...kept, ...added];
    this.deletes = [...(this.deletes ?? []), ...steps.flatMap(({ deletes }) => deletes ?? [])];
    const folder = join(this.root, 'metadata');
    mkdirSync(folder, { recursive: true });
    const entryOf = (path: string, of: number, snapshotId: bigint | null, file: object): object => ({
      status: snapshotId === null ? 1 : 0,
      snapshot_id: snapshotId,
      sequence_number: snapshotId === null ? null : of,
      data_file: {
        content: 0,
        file_path: `${this.location}/${decodeURI(path)}`,
        file_format: 'PARQUET',
        partition: { p: null },
        record_count: 1,
        split_offsets: [4, 5],
        ...file,
      },
    });
    const write = (name: string, entries: readonly object[], content = 0): object => {
      const fields = [
        { 'source-id': this.columns['p']?.id ?? 999, 'field-id': 1000, name: 'p', transform: 'identity' },
      ];
      const properties = { 'partition-spec': JSON.stringify(fields) };
      writeFileSync(join(folder, name), avroBytes(manifestSchema, entries, { codec: 'deflate', properties }));
      return {
        manifest_path: `${this.location}/metadata/${name}`,
        content,
        sequence_number: version,
        added_snapshot_id: id,
      };
    };
    const dataOf = ({ path, values, ...file }: Added, snapshotId: bigint | null): object =>
      entryOf(path, file.version, snapshotId, { partition: { p: values['p'] ?? null } });
    const deletesOf = ({ path, version: of, isEquality, vector, of: data }: DeleteFile): object =>
      entryOf(path, of, id, {
        content: isEquality === true ? 2 : 1,
        ...(vector === undefined
          ? {}
          : {
              file_format: 'PUFFIN',
              referenced_data_file: `${this.location}/${data}`,
              content_offset: vector.offset,
              content_size_in_bytes: vector.length,
            }),
      });
    const manifests = [
      write(
        `${version}-kept.avro`,
        kept.map((file) => dataOf(file, file.snapshotId)),
      ),
      write(
        `${version}-added.avro`,
        added.map((file) => dataOf(file, null)),
      ),
      write(`${version}-deletes.avro`, this.deletes.map(deletesOf), 1),
    ];
    writeFileSync(join(folder, `snap-${version}.avro`), avroBytes(listSchema, manifests));
    const all = steps.flatMap(({ add, remove }) => [add, remove]).filter((each) => each !== undefined);
    const isReplace = removed.size > 0 && all.every(({ dataChange }) => !dataChange);
    const fields = Object.entries(this.columns).map(([name, { type, id }], i) => ({
      id: id ?? i + 1,
      name,
      required: false,
      type: type === 'integer' ? 'int' : type === 'timestamp' ? 'timestamptz' : type,
    }));
    this.schemas = [...(this.schemas ?? []), { 'schema-id': version, type: 'struct', fields }];
    this.snapshots = [
      ...(this.snapshots ?? []),
      {
        'snapshot-id': `#${id}`,
        ...(version > 0 ? { 'parent-snapshot-id': `#${id - 1n}` } : {}),
        'schema-id': version,
        'manifest-list': `${this.location}/metadata/snap-${version}.avro`,
        summary: { operation: isReplace ? 'replace' : 'append' },
      },
    ];
    const metadata = {
      'format-version': this.format ?? 2,
      location: this.location,
      'current-schema-id': version,
      schemas: this.schemas,
      'partition-specs': [
        {
          'spec-id': 0,
          fields: [{ 'source-id': this.columns['p']?.id ?? 999, name: 'p', transform: 'identity' }],
        },
      ],
      'current-snapshot-id': `#${id}`,
      snapshots: this.snapshots,
    };
    const text = JSON.stringify(metadata).replace(/"#(\d+)"/g, '$1');
    if (version % 2 === 0) writeFileSync(join(folder, `v${version}.metadata.json`), text);
    else writeFileSync(join(folder, `v${version}.gz.metadata.json`), gzipSync(text));
    return version;
  }
}
