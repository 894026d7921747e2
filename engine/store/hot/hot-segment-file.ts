import { fillCursors } from '../manifest/cursor-column.js';
import { closing } from '../../core/waiting.js';
import type { Arena } from '../../core/arena.js';
import { leaseMemory, type MemoryLease } from '../../core/memory-lease.js';
import { assert, DamageError, LogstrataError, isLogstrataError } from '../../core/errors.js';
import type { RecordBatch } from '../../columns/column.js';
import { formatCursor, positionFromInt64, type Position } from '../../core/cursor.js';
import { hotFileBytesMax } from '../../core/limits.js';
import type { Schema } from '../../core/schema.js';
import {
  checkSchemaMessage,
  decodeBatchMessage,
  encodeBatchMessage,
  encodeSchemaMessage,
} from './arrow-batch.js';
import { asObject, objectsField, parseJsonObject } from '../disk/checked-json.js';
import type { Directory, WritableFile } from '../disk/directory.js';
import {
  flatRuns,
  readCheckpoint,
  readCounters,
  readOrdinalRuns,
  readRejected,
} from '../manifest/manifest-format.js';
import type { Checkpoint, Counters, HotEntry, OrdinalRun, RejectedEntry } from '../manifest/manifest.js';
import { findSealedMessage, sealedMessageBytes } from './sealed-message.js';

/** Smaller messages do not benefit from kernels. */
const leasedBytesMin = 32 * 1024;
/** Larger messages get memory of their own, which the garbage collector frees. */
const keptBytesMax = 16 * 1024 * 1024;

/**
 * Reuses memory for the messages of commits, which take some megabytes each. Allocating it anew each time would keep the garbage collector
 * busy. If shared memory can be leased, kernels copy the records into it and compute the checksum in place.
 */
export class MessageSpace {
  private spare = new Uint8Array(0);

  /** Calls `use` with an arena for one message. The memory is uninitialised and belongs to `use` until it returns. */
  async use<T>(use: (arena: Arena) => Promise<T>): Promise<T> {
    const leases: MemoryLease[] = [];
    let taken = this.spare;
    // A concurrent call gets other memory.
    this.spare = new Uint8Array(0);
    try {
      return await use((sizeBytes) => {
        if (sizeBytes <= taken.length) return taken.subarray(0, sizeBytes);
        const isLeased = sizeBytes >= leasedBytesMin && sizeBytes <= keptBytesMax;
        const lease = isLeased ? leaseMemory(sizeBytes) : null;
        if (lease !== null) {
          leases.push(lease);
          return lease.bytes;
        }
        const fresh = new Uint8Array(sizeBytes);
        if (sizeBytes <= keptBytesMax) taken = fresh;
        return fresh;
      });
    } finally {
      for (const lease of leases) lease.free();
      if (taken.length > this.spare.length) this.spare = taken;
    }
  }
}

/** What a batch commits together with its records. */
export interface HotBatchMeta {
  readonly checkpoints: readonly Checkpoint[];
  /** The file of rejected lines, with its length including this batch's lines; null if there is none. */
  readonly rejected: RejectedEntry | null;
  /** What this batch adds to the counters. */
  readonly counters: Counters;
}

/** A batch as read from a hot file. */
export interface HotBatch {
  readonly batch: RecordBatch;
  readonly runs: readonly OrdinalRun[];
  readonly meta: HotBatchMeta;
  /** Offset and length of its message in the file. */
  readonly offset: number;
  readonly bytes: number;
}

/** A damaged range of a hot file. */
export interface HotDamage {
  readonly offset: number;
  readonly bytes: number;
  readonly reason: string;
  /** Position of the last record before the damage and of the first one after it, in file order; null if there is none. */
  readonly after: Position | null;
  readonly before: Position | null;
}

/** What was read of a hot file. */
export interface HotSegmentContent {
  readonly batches: readonly HotBatch[];
  /** Offset for the next batch: the end of the last good one. */
  readonly endBytes: number;
  /** Length of the torn tail after it, a batch that was never committed. */
  readonly tornBytes: number;
}

function metaJson(runs: readonly OrdinalRun[], meta: HotBatchMeta): string {
  return JSON.stringify({
    runs: flatRuns(runs),
    checkpoints: meta.checkpoints,
    rejected: meta.rejected === null ? [] : [meta.rejected],
    counters: meta.counters,
  });
}

function readMeta(json: string): { runs: OrdinalRun[]; meta: HotBatchMeta } {
  const object = parseJsonObject(json, 'the metadata of a batch');
  const runs = readOrdinalRuns(object, 'runs');
  const meta = {
    checkpoints: objectsField(object, 'checkpoints', readCheckpoint),
    rejected: objectsField(object, 'rejected', readRejected)[0] ?? null,
    counters: readCounters(asObject(object['counters'], 'counters')),
  };
  return { runs, meta };
}

/** Memory for messages, shared by all writers of the process, since agents rarely commit at the same moment. */
const messages = new MessageSpace();

/**
 * Appends batches to a hot file, an Arrow IPC stream without an end mark, so that any Arrow reader can open it. Format: `docs/format.md`,
 * "Hot segment".
 */
export class HotSegmentWriter {
  #bytes: number;
  #failure: unknown;
  #busy = false;

  private constructor(
    readonly path: string,
    private readonly schema: Schema,
    private readonly file: WritableFile,
    bytes: number,
  ) {
    this.#bytes = bytes;
  }

  /**
   * Creates a file with its schema message. Its content is durable on return; its name is durable once the caller has synced the folder.
   * After a failure the file is removed, if possible.
   */
  static async create(directory: Directory, path: string, schema: Schema): Promise<HotSegmentWriter> {
    const message = encodeSchemaMessage(schema);
    const file = await directory.create(path);
    try {
      await file.write(0, message);
      await file.sync();
    } catch (error) {
      await file.close().catch(() => {});
      await directory.remove(path).catch(() => {});
      throw error;
    }
    return new HotSegmentWriter(path, schema, file, message.length);
  }

  /**
   * Reopens a file to append at `endBytes`, the end of the last good batch. Durably truncates what follows. Throws `damaged` if the file is
   * damaged or shorter.
   */
  static async reopen(
    directory: Directory,
    path: string,
    schema: Schema,
    endBytes: number,
  ): Promise<HotSegmentWriter> {
    const lengths = { committedBytes: endBytes, foldedBytes: 0 };
    const content = await scanHotSegment(directory, path, schema, lengths);
    if (content.damages.length > 0) throw damageError(directory, path, content.damages[0]!);
    const file = await directory.openWrite(path);
    try {
      if (content.tornBytes > 0) {
        await file.truncate(endBytes);
        await file.sync();
      }
    } catch (error) {
      await file.close().catch(() => {});
      throw error;
    }
    return new HotSegmentWriter(path, schema, file, endBytes);
  }

  /** Length of the file up to its last durable batch. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Appends a batch durably. Throws `limit` for one that is too large, without any effect. After any other failure the file is good up to
   * `bytes`, and nothing more can be appended.
   */
  async append(batch: RecordBatch, runs: readonly OrdinalRun[], meta: HotBatchMeta): Promise<void> {
    assert(!this.#busy, 'batches are appended one at a time');
    if (this.#failure !== undefined) {
      throw new LogstrataError(
        'closed',
        `an earlier write to ${this.path} failed; the file is intact up to byte ${this.#bytes}`,
        {
          path: this.path,
          offset: this.#bytes,
          cause: this.#failure,
        },
      );
    }
    await messages.use((arena) => {
      const cursors = new BigInt64Array(batch.length);
      fillCursors(runs, 0, cursors);
      const json = metaJson(runs, meta);
      return this.#write(encodeBatchMessage(this.schema, batch, cursors, json, this.#bytes, arena));
    });
  }

  async #write(message: Uint8Array): Promise<void> {
    if (this.#bytes + message.length > hotFileBytesMax) {
      throw new LogstrataError('limit', `${this.path} would grow past ${hotFileBytesMax} bytes`, {
        path: this.path,
      });
    }
    this.#busy = true;
    try {
      await this.file.write(this.#bytes, message);
      await this.file.sync();
      this.#bytes += message.length;
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      this.#busy = false;
    }
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

/**
 * Reads a hot file from `fromBytes` on, which is 0 or the `endBytes` of an earlier reading.
 *
 * `committedBytes` is the length that the manifest or the writer says is durable. Everything before it must be whole; what follows was
 * never committed. If it is null, as after a crash, an invalid last batch after `foldedBytes` was torn and is ignored. An invalid batch
 * before `foldedBytes`, or one followed by a good batch, is damage. Throws `damaged` with the offset, `unsupported` for a newer format,
 * `not_found`.
 */
export async function readHotSegment(
  directory: Directory,
  path: string,
  schema: Schema,
  committedBytes: number | null,
  fromBytes = 0,
  foldedBytes = 0,
): Promise<HotSegmentContent> {
  const lengths = { committedBytes, foldedBytes };
  const { damages, ...content } = await scanHotSegment(directory, path, schema, lengths, fromBytes);
  if (damages.length > 0) throw damageError(directory, path, damages[0]!);
  return content;
}

function damageError(directory: Directory, path: string, damage: HotDamage): DamageError {
  const after = damage.after === null ? 'the beginning' : `record ${formatCursor(damage.after)}`;
  const before = damage.before === null ? 'the end' : `record ${formatCursor(damage.before)}`;
  return new DamageError(
    `hot file ${directory.location}/${path} is damaged at byte ${damage.offset} (${damage.bytes} bytes): ${damage.reason}; ` +
      `records committed between ${after} and ${before} can't be read`,
    { path: `${directory.location}/${path}`, offset: damage.offset },
  );
}

/** Like `readHotSegment`, but continues after damage and returns a list of it. For verification and repair. */
export async function scanHotSegment(
  directory: Directory,
  path: string,
  schema: Schema,
  { committedBytes, foldedBytes }: Pick<HotEntry, 'committedBytes' | 'foldedBytes'>,
  fromBytes = 0,
): Promise<HotSegmentContent & { readonly damages: HotDamage[] }> {
  const bytes = await readFrom(directory, path, fromBytes);
  const sizeBytes = fromBytes + bytes.length;
  const limit = committedBytes ?? sizeBytes;
  const wholeBytes = committedBytes ?? foldedBytes;
  const scan = new MessageScan(bytes.subarray(0, Math.max(0, limit - fromBytes)), fromBytes, schema);
  scan.run(wholeBytes);
  if (wholeBytes > sizeBytes)
    scan.damage(sizeBytes, wholeBytes - sizeBytes, 'the file is shorter than what was committed');
  return {
    batches: scan.batches,
    endBytes: scan.endBytes,
    tornBytes: Math.max(0, sizeBytes - (committedBytes ?? scan.endBytes)),
    damages: scan.damages,
  };
}

async function readFrom(directory: Directory, path: string, fromBytes: number): Promise<Uint8Array> {
  return closing(directory.openRead(path), async (file) => {
    const length = (await file.size()) - fromBytes;
    if (length > hotFileBytesMax) {
      throw new LogstrataError('limit', `${path} has ${length} bytes, more than ${hotFileBytesMax}`, {
        path,
      });
    }
    return length <= 0 ? new Uint8Array(0) : await file.read(fromBytes, length);
  });
}

/** Scans the messages of a hot file. `base` is the offset in the file of the first of `bytes`. */
class MessageScan {
  readonly batches: HotBatch[] = [];
  readonly damages: HotDamage[] = [];
  endBytes: number;
  /** Number of batches before the last damage. */
  #batchesBefore = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly base: number,
    private readonly schema: Schema,
  ) {
    this.endBytes = base;
  }

  /** @param wholeBytes everything before this offset was committed; an invalid last batch after it is a torn tail, not damage */
  run(wholeBytes: number): void {
    let at = 0;
    if (this.base === 0 && this.bytes.length === 0) this.damage(0, 0, 'it has no schema');
    while (at < this.bytes.length) {
      const messageBytes = sealedMessageBytes(this.bytes, at, this.base + at);
      if (messageBytes > 0) {
        this.#take(at, messageBytes);
        at += messageBytes;
        continue;
      }
      const next = findSealedMessage(this.bytes, at + 8 - (at % 8), this.base);
      const isSchema = this.base + at === 0;
      // A torn schema message is always damage, because a manifest names a file only once its schema is durable.
      if (next < 0 && this.base + at >= wholeBytes && !isSchema) return;
      const end = next < 0 ? this.bytes.length : next;
      this.damage(this.base + at, end - at, isSchema ? 'its schema is incomplete' : 'a batch is incomplete');
      at = end;
    }
  }

  /** Records damage. Extends the previous damage if no good batch lies between. */
  damage(offset: number, bytes: number, reason: string): void {
    const last = this.damages.at(-1);
    if (last !== undefined && this.#batchesBefore === this.batches.length) {
      this.damages[this.damages.length - 1] = { ...last, bytes: offset + bytes - last.offset };
      return;
    }
    this.#batchesBefore = this.batches.length;
    const after = lastPosition(this.batches.findLast(({ runs }) => runs.length > 0));
    this.damages.push({ offset, bytes, reason, after, before: null });
  }

  #take(at: number, messageBytes: number): void {
    const offset = this.base + at;
    const message = this.bytes.subarray(at, at + messageBytes);
    this.endBytes = offset + messageBytes;
    try {
      if (offset === 0) checkSchemaMessage(message, this.schema);
      else this.#takeBatch(message, offset);
    } catch (error) {
      if (!isLogstrataError(error) || error.code !== 'damaged') throw error;
      this.damage(offset, messageBytes, error.message);
    }
  }

  #takeBatch(message: Uint8Array, offset: number): void {
    const { batch, cursors, metaJson: json } = decodeBatchMessage(message, this.schema, true);
    const { runs, meta } = readMeta(json);
    assert(cursors !== null, 'hot batches have cursors');
    if (!runsMatch(runs, cursors)) throw new DamageError('its runs and its cursors differ', {});
    const [first] = runs;
    if (first !== undefined) {
      const before = { partition: first.partition, ordinal: first.firstOrdinal };
      for (let i = this.damages.length - 1; i >= 0 && this.damages[i]!.before === null; i--)
        this.damages[i] = { ...this.damages[i]!, before };
    }
    this.batches.push({ batch, runs, meta, offset, bytes: message.length });
  }
}

function lastPosition(batch: HotBatch | undefined): Position | null {
  const run = batch?.runs.at(-1);
  return run === undefined ? null : { partition: run.partition, ordinal: run.firstOrdinal + run.rows - 1 };
}

function runsMatch(runs: readonly OrdinalRun[], cursors: BigInt64Array): boolean {
  let row = 0;
  for (const run of runs) {
    if (run.rows === 0 || row + run.rows > cursors.length) return false;
    const first = positionFromInt64(cursors[row]!);
    const last = positionFromInt64(cursors[row + run.rows - 1]!);
    if (first.partition !== run.partition || first.ordinal !== run.firstOrdinal) return false;
    if (last.partition !== run.partition || last.ordinal !== run.firstOrdinal + run.rows - 1) return false;
    row += run.rows;
  }
  return row === cursors.length;
}
