import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { avroBytes } from './avro-bytes.js';
import { DeltaLake } from './delta-table.js';

interface Added {
  readonly path: string;
  readonly values: Record<string, string | null>;
  readonly snapshotId: bigint;
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

  /** Where the metadata says that the table is. */
  get location(): string {
    return 's3a://warehouse/db/table';
  }

  override commit(...actions: readonly object[]): number {
    const version = ++this.version;
    const id = this.snapshotOf(version);
    const steps = actions as readonly {
      add?: { path: string; dataChange: boolean; partitionValues: object };
      remove?: { path: string; dataChange: boolean };
    }[];
    const removed = new Set(steps.flatMap(({ remove }) => (remove ? [remove.path] : [])));
    const kept = (this.live ?? []).filter(({ path }) => !removed.has(path));
    const added = steps.flatMap(({ add }) =>
      add ? [{ path: add.path, values: add.partitionValues as Added['values'], snapshotId: id }] : [],
    );
    this.live = [...kept, ...added];
    const folder = join(this.root, 'metadata');
    mkdirSync(folder, { recursive: true });
    const write = (name: string, files: readonly Added[], status: number): object => {
      const entries = files.map(({ path, values, snapshotId }) => ({
        status,
        snapshot_id: status === 1 ? null : snapshotId,
        sequence_number: null,
        data_file: {
          content: 0,
          file_path: `${this.location}/${decodeURI(path)}`,
          file_format: 'PARQUET',
          partition: { p: values['p'] ?? null },
          record_count: 1,
          split_offsets: [4, 5],
        },
      }));
      const fields = [
        { 'source-id': this.columns['p']?.id ?? 999, 'field-id': 1000, name: 'p', transform: 'identity' },
      ];
      const properties = { 'partition-spec': JSON.stringify(fields) };
      writeFileSync(join(folder, name), avroBytes(manifestSchema, entries, { codec: 'deflate', properties }));
      return {
        manifest_path: `${this.location}/metadata/${name}`,
        content: 0,
        sequence_number: version,
        added_snapshot_id: id,
      };
    };
    const manifests = [write(`${version}-kept.avro`, kept, 0), write(`${version}-added.avro`, added, 1)];
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
