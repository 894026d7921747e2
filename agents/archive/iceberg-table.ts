import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { isLogstrataError, LogstrataError, type RowRanges } from '../../engine/index.js';
import { readAvro, type AvroRecord } from './avro.js';
import { fieldTypeOf } from './column-facts.js';
import { damagedAt, readStoredVector } from './deletion-vector.js';
import type { TableFolder } from './table-folder.js';
import { TableSchema, type TableColumn } from './table-schema.js';
import type { Table, TableDeletes, TableFile, TableState } from './table.js';

/** `00003-….metadata.json` or `v3.metadata.json`, which may be compressed. */
const metadataPattern = /^v?(\d+)(?:-[^/]*)?(\.gz)?\.metadata\.json(\.gz)?$/;

/** Limit on the bytes of a compressed file of metadata once it is unpacked. */
const metadataBytesMax = 256 * 1024 * 1024;

/** A whole number that a number may not hold exactly: the id of a snapshot. */
const longNumber = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

type Json = Readonly<Record<string, unknown>>;

/** https://iceberg.apache.org/spec/#table-metadata-fields */
interface Metadata {
  readonly 'format-version'?: number;
  readonly location?: string;
  readonly schemas?: readonly IcebergSchema[];
  readonly schema?: IcebergSchema;
  readonly 'current-schema-id'?: number;
  readonly 'partition-specs'?: readonly { readonly fields: readonly Json[] }[];
  readonly snapshots?: readonly Snapshot[];
  readonly 'current-snapshot-id'?: number | string;
  readonly properties?: Readonly<Record<string, string>>;
}

interface IcebergSchema {
  readonly 'schema-id'?: number;
  readonly fields: readonly Json[];
}

interface Snapshot {
  readonly 'snapshot-id': number | string;
  readonly 'parent-snapshot-id'?: number | string;
  readonly 'schema-id'?: number;
  readonly 'manifest-list'?: string;
  readonly manifests?: readonly string[];
  readonly summary?: Readonly<Record<string, string>>;
}

/** A live file of a manifest, and the snapshot that added it. */
interface Entry {
  readonly file: Pick<TableFile, 'path' | 'values'>;
  readonly snapshotId: string;
  /** Deletes apply to files with the same number or a lower one. */
  readonly sequence: number;
  /** Set where the file has deleted rows: of which file, and where in it, for a deletion vector. */
  readonly deletes?: { readonly of: string | null; readonly offset: number; readonly length: number };
}

/** Deleted rows of one data file, by one file of deletes. */
interface Deletes {
  readonly name: string;
  readonly sequence: number;
  read(): Promise<RowRanges>;
}

/** Limit on the deleted rows that are held in memory. */
const deletedMax = 20_000_000;

/** An Iceberg table, read from its metadata. */
export class IcebergTable implements Table {
  private state: TableState | undefined;
  private snapshotId: string | undefined;
  private metadataName = '';
  /** By path: manifests never change. */
  private manifests = new Map<string, readonly Entry[]>();
  /** By path of a file of deletes, the rows of each data file. */
  private deletes = new Map<string, ReadonlyMap<string, RowRanges>>();
  /** Files by path, so that what is known of an object is kept. */
  private files = new Map<string, TableFile>();
  /** Snapshots that have rewritten files since the table was first read. */
  private readonly rewrites = new Set<string>();

  /** @param at the id of the snapshot that is wanted; undefined for the newest */
  constructor(
    private readonly folder: TableFolder,
    private readonly at: string | undefined,
    private readonly filesMax: number,
  ) {}

  async look(): Promise<TableState> {
    if (this.at !== undefined && this.state !== undefined) return this.state;
    try {
      return (this.state = await this.read());
    } catch (error) {
      if (isLogstrataError(error)) throw error;
      throw this.broken(`has metadata that can't be read: ${(error as Error).message}`);
    }
  }

  private async read(): Promise<TableState> {
    const names = await this.folder.names('metadata');
    const metadataName = newestOf(names);
    if (metadataName === undefined) throw this.broken('has no *.metadata.json');
    if (metadataName === this.metadataName && this.state !== undefined) return this.state;
    const metadata = await this.metadataOf(metadataName);
    const { snapshots = [], 'current-snapshot-id': current } = metadata;
    const byId = new Map(snapshots.map((snapshot) => [String(snapshot['snapshot-id']), snapshot]));
    const newest = this.at ?? String(current ?? -1);
    const isNone = newest === '-1' && this.at === undefined;
    if (!isNone && !byId.has(newest)) {
      const known = [...byId.keys()].slice(-5).join(', ') || 'none';
      throw this.broken(`has no snapshot ${newest}: the last ones that it has are ${known}`);
    }
    const id = isNone ? newest : this.nextOf(newest, byId);
    const snapshot = byId.get(id);
    const schema = schemaOf(metadata, snapshot);
    const files =
      snapshot === undefined ? new Map<string, TableFile>() : await this.filesOf(snapshot, metadata);
    this.files = files;
    this.snapshotId = id;
    this.metadataName = id === newest ? metadataName : '';
    return { version: isNone ? 'no snapshot' : `snapshot ${id}`, schema, files: [...files.values()] };
  }

  /** The snapshot to go on to: snapshots that rewrite files, and others, come in turns. */
  private nextOf(newest: string, byId: ReadonlyMap<string, Snapshot>): string {
    const way: string[] = [];
    for (let id = newest; id !== this.snapshotId;) {
      way.unshift(id);
      const parent = byId.get(id)?.['parent-snapshot-id'];
      // Without a way from what is known, all is new.
      if (parent === undefined || way.length > byId.size || this.snapshotId === undefined) return newest;
      id = String(parent);
    }
    const isRewrite = (id: string): boolean => byId.get(id)?.summary?.['operation'] === 'replace';
    const end = way.findIndex((id) => isRewrite(id) !== isRewrite(way[0]!));
    const steps = end < 0 ? way : way.slice(0, end);
    for (const id of steps) if (isRewrite(id)) this.rewrites.add(id);
    return steps.at(-1) ?? newest;
  }

  private async metadataOf(name: string): Promise<Metadata> {
    const bytes = await this.folder.read(`${this.folder.root}/metadata/${name}`);
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
    const text = Buffer.from(
      isPacked ? gunzipSync(bytes, { maxOutputLength: metadataBytesMax }) : bytes,
    ).toString();
    const metadata = JSON.parse(withLongNumbersAsTexts(text)) as Metadata;
    const version = metadata['format-version'] ?? 1;
    if (version > 3) throw this.unsupported(`has the format version ${version}`);
    return metadata;
  }

  private async filesOf(snapshot: Snapshot, metadata: Metadata): Promise<Map<string, TableFile>> {
    const { location } = metadata;
    const listed = snapshot['manifest-list'];
    const lists = (snapshot.manifests ?? []).map((path): AvroRecord => ({ manifest_path: path }));
    if (listed !== undefined)
      await this.avro(this.folder.place(listed, location), (list) => void lists.push(list));
    const manifests = new Map<string, readonly Entry[]>();
    for (const { manifest_path: named, added_snapshot_id: addedBy, sequence_number: sequence } of lists) {
      const path = this.folder.place(String(named), location);
      const added = { by: String(addedBy), sequence: Number(sequence ?? 0) };
      manifests.set(path, this.manifests.get(path) ?? (await this.entriesOf(path, added, metadata)));
    }
    const entries = [...manifests.values()].flat();
    if (entries.length > this.filesMax) throw this.broken(`has more than ${this.filesMax} files`);
    const deletes = await this.deletesOf(
      entries.filter((entry) => entry.deletes !== undefined),
      location,
    );
    const files = new Map<string, TableFile>();
    for (const { file, snapshotId, sequence, deletes: isDeletes } of entries) {
      if (isDeletes !== undefined) continue;
      const known = this.files.get(file.path);
      const isRewritten = known?.isRewritten ?? this.rewrites.has(snapshotId);
      const own = (deletes.get(file.path) ?? []).filter((each) => each.sequence >= sequence);
      const stamp = known?.stamp === undefined ? {} : { stamp: known.stamp };
      files.set(file.path, { ...file, isRewritten, deletes: togetherOf(own), ...stamp });
    }
    this.manifests = manifests;
    return files;
  }

  /** The deleted rows of data files, by their paths. */
  private async deletesOf(
    entries: readonly Entry[],
    location: string | undefined,
  ): Promise<ReadonlyMap<string, Deletes[]>> {
    const all = new Map<string, Deletes[]>();
    const read = new Map<string, ReadonlyMap<string, RowRanges>>();
    const add = (of: string, deletes: Deletes): void => void all.set(of, [...(all.get(of) ?? []), deletes]);
    for (const { file, sequence, deletes } of entries) {
      const { path } = file;
      const { of, offset, length } = deletes!;
      if (of !== null) {
        const vector = async (): Promise<RowRanges> => {
          const bytes = await this.folder.read(path, offset, length);
          return damagedAt(path, () => readStoredVector(bytes));
        };
        add(this.folder.place(of, location), { name: `${path}@${offset}`, sequence, read: vector });
        continue;
      }
      const rows = this.deletes.get(path) ?? (await this.positionsOf(path, location));
      read.set(path, rows);
      for (const [data, ranges] of rows)
        add(data, { name: path, sequence, read: () => Promise.resolve(ranges) });
    }
    this.deletes = read;
    return all;
  }

  /** The rows that a file of positional deletes names. */
  private async positionsOf(path: string, location: string | undefined): Promise<Map<string, RowRanges>> {
    const rows = new Map<string, [number, number][]>();
    let count = 0;
    await this.folder.rows(path, ['file_path', 'pos'], ([named, position]) => {
      const row = Number(position ?? NaN);
      if (named === null || named === undefined || !Number.isSafeInteger(row) || row < 0)
        throw new LogstrataError('damaged', `${path} has a deleted row without a file or place`, { path });
      if (++count > deletedMax) throw this.unsupported(`has more than ${deletedMax} deleted rows`);
      const own = rows.get(named) ?? [];
      rows.set(named, own);
      own.push([row, row + 1]);
    });
    return new Map([...rows].map(([named, own]) => [this.folder.place(named, location), own]));
  }

  /** The live files of a manifest. */
  private async entriesOf(
    path: string,
    added: { readonly by: string; readonly sequence: number },
    metadata: Metadata,
  ): Promise<Entry[]> {
    const columns = new Map(schemaFields(metadata).map((field) => [field['id'], field]));
    const entries: Entry[] = [];
    let partitions: readonly Json[] | undefined;
    await this.avro(path, (entry, properties) => {
      partitions ??= JSON.parse(properties['partition-spec'] ?? '[]') as readonly Json[];
      if (entry['status'] === 2) return;
      const file = entry['data_file'] as AvroRecord;
      const { content, file_path: named, file_format: format, partition } = file;
      if (content === 2) throw this.unsupported('has equality deletes');
      const isVector = content === 1 && String(format).toUpperCase() === 'PUFFIN';
      if (!isVector && String(format).toUpperCase() !== 'PARQUET')
        throw this.unsupported(`has files of ${String(format)}`);
      const values: Record<string, string | null> = {};
      const given = (partition ?? {}) as AvroRecord;
      partitions.forEach(({ transform, 'source-id': source }, i) => {
        const column = columns.get(source);
        if (transform !== 'identity' || column === undefined) return;
        values[String(column['name'])] = partitionText(Object.values(given)[i], column['type']);
      });
      const own = { path: this.folder.place(String(named), metadata.location), values };
      const { referenced_data_file: of, content_offset: offset, content_size_in_bytes: length } = file;
      const where = { of: isVector ? String(of) : null, offset: Number(offset), length: Number(length) };
      entries.push({
        file: own,
        snapshotId: String(entry['snapshot_id'] ?? added.by),
        sequence: Number(entry['sequence_number'] ?? added.sequence),
        ...(content === 1 ? { deletes: where } : {}),
      });
      if (entries.length > this.filesMax) throw this.broken(`has more than ${this.filesMax} files`);
    });
    return entries;
  }

  private async avro(path: string, take: Parameters<typeof readAvro>[1]): Promise<void> {
    const bytes = await this.folder.read(path);
    try {
      await readAvro(bytes, take);
    } catch (error) {
      if (isLogstrataError(error)) throw error;
      const message = `${path} is no manifest of an Iceberg table: ${(error as Error).message}`;
      throw new LogstrataError('damaged', message, { path });
    }
  }

  private broken(problem: string): LogstrataError {
    const { root } = this.folder;
    return new LogstrataError('damaged', `the Iceberg table ${root} ${problem}`, { path: root });
  }

  private unsupported(problem: string): LogstrataError {
    const { root } = this.folder;
    const message = `the Iceberg table ${root} ${problem}, which is not supported`;
    return new LogstrataError('unsupported', message, { path: root });
  }
}

/** JSON with each long whole number as a text. Takes time in proportion to its length. */
function withLongNumbersAsTexts(json: string): string {
  const parts: string[] = [];
  for (let at = 0; at < json.length;) {
    const begin = json.indexOf('"', at);
    const between = json.slice(at, begin < 0 ? json.length : begin);
    parts.push(between.replaceAll(longNumber, '"$&"'));
    if (begin < 0) break;
    let end = begin + 1;
    while (end < json.length && json[end] !== '"') end += json[end] === '\\' ? 2 : 1;
    parts.push(json.slice(begin, end + 1));
    at = end + 1;
  }
  return parts.join('');
}

/** The rows that several files of deletes name. */
function togetherOf(all: readonly Deletes[]): TableDeletes | undefined {
  if (all.length === 0) return undefined;
  const names = all.map(({ name }) => name.slice(name.lastIndexOf('/') + 1)).toSorted();
  return {
    id: createHash('sha256').update(names.join('\n')).digest('hex').slice(0, 32),
    read: async () => {
      const ranges = (await Promise.all(all.map((each) => each.read()))).flat();
      return ranges.toSorted(([a], [b]) => a - b);
    },
  };
}

/** The newest file of metadata: that of the highest version. */
function newestOf(names: readonly string[]): string | undefined {
  let newest: string | undefined;
  let version = -1;
  for (const name of names.toSorted()) {
    const own = Number(metadataPattern.exec(name)?.[1] ?? -1);
    if (own < version || own < 0) continue;
    newest = name;
    version = own;
  }
  return newest;
}

function schemaFields(metadata: Metadata, snapshot?: Snapshot): readonly Json[] {
  const { schemas = [], schema, 'current-schema-id': current } = metadata;
  // A column that was renamed has its newest name, unless an old snapshot is asked for.
  const id = snapshot?.['schema-id'] ?? current;
  const found = schemas.find((each) => each['schema-id'] === id) ?? schema ?? schemas.at(-1);
  if (found === undefined) throw new Error('there is no schema');
  return found.fields;
}

/** The columns of a table, found by their ids in its files. */
function schemaOf(metadata: Metadata, snapshot: Snapshot | undefined): TableSchema {
  const isCurrent = String(snapshot?.['snapshot-id']) === String(metadata['current-snapshot-id'] ?? -1);
  const fields = schemaFields(metadata, isCurrent ? undefined : snapshot);
  const specs = metadata['partition-specs'] ?? [];
  const identities = specs.flatMap((spec) => spec.fields).filter(({ transform }) => transform === 'identity');
  const sources = new Set(identities.map((field) => field['source-id']));
  return new TableSchema(
    fields.map(({ id, name, type, 'initial-default': initial }): TableColumn => {
      const stored = String(name);
      if (initial !== undefined && initial !== null) {
        const message = `the column "${stored}" has a default value for older files, which is not supported`;
        throw new LogstrataError('unsupported', message);
      }
      const partition = sources.has(id) ? { partition: 'if missing' as const } : {};
      return { name: stored, type: fieldTypeOf(type), stored, id: Number(id), ...partition };
    }),
  );
}

/** A value of an identity partition as the text of its field. */
function partitionText(value: unknown, type: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (type === 'date') return new Date(Number(value) * 86_400_000).toISOString().slice(0, 10);
  if (/^timestamp/.test(String(type)))
    return new Date(Math.floor(Number(value) / (/_ns$/.test(String(type)) ? 1e6 : 1000))).toISOString();
  if (!Buffer.isBuffer(value)) return String(value);
  const scale = /^decimal\(\d+,\s*(\d+)\)$/.exec(String(type))?.[1];
  if (scale === undefined) return value.toString();
  const unscaled =
    value.length === 0 ? 0n : BigInt.asIntN(8 * value.length, BigInt(`0x${value.toString('hex')}`));
  return scale === '0' ? String(unscaled) : String(Number(unscaled) / 10 ** Number(scale));
}
