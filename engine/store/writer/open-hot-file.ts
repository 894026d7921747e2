import { randomBytes } from 'node:crypto';
import type { RecordBatch } from '../../columns/column.js';
import type { Schema } from '../../core/schema.js';
import type { HotFile } from '../reading/agent-state.js';
import type { CommitExtras, RejectedLine } from '../manifest/commit.js';
import type { Directory } from '../disk/directory.js';
import { HotSegmentWriter, type HotBatch } from '../hot/hot-segment-file.js';
import type { HotEntry, OrdinalRun, RejectedEntry } from '../manifest/manifest.js';
import { encodeRejectedLine, RejectedFile } from '../manifest/rejected-file.js';

/** Name of the file of rejected lines that belongs to a hot file. Both are relative to the agent's folder. */
export function rejectedBeside(hotFile: string): string {
  return hotFile.replace(/^hot\/(.*)\.arrows$/, 'rejected/$1.jsonl');
}

/** The hot file that is appended to, with its file of rejected lines. */
export class OpenHotFile {
  /** The file's entry in the agent's state. Set once a manifest names the file. */
  hot!: HotFile;
  readonly rejectedName: string;
  private rejected: RejectedFile | undefined;

  private constructor(
    private readonly directory: Directory,
    private readonly agent: string,
    readonly entry: HotEntry,
    private readonly writer: HotSegmentWriter,
  ) {
    this.rejectedName = rejectedBeside(entry.file);
  }

  /** Creates an empty hot file. Its name is durable once the caller has synced `hot/`. */
  static async create(
    directory: Directory,
    agent: string,
    schema: Schema,
    { schemaVersion, createdMs }: Pick<HotEntry, 'schemaVersion' | 'createdMs'>,
  ): Promise<OpenHotFile> {
    const id = randomBytes(6).toString('hex');
    const file = `hot/${id}.arrows`;
    const entry = { file, schemaVersion, committedBytes: null, foldedBytes: 0, runs: [], createdMs };
    await directory.makeDirectory(`${agent}/hot`);
    const writer = await HotSegmentWriter.create(directory, `${agent}/${file}`, schema);
    return new OpenHotFile(directory, agent, entry, writer);
  }

  /** Length up to the last durable batch. */
  get bytes(): number {
    return this.writer.bytes;
  }

  /**
   * Makes rejected lines and then a batch durable. Keeps the first lines that fit into `rejectedRoomBytes`. After a failure nothing more
   * may be appended.
   */
  async append(
    batch: RecordBatch,
    runs: readonly OrdinalRun[],
    extras: CommitExtras,
    rejectedRoomBytes: number,
  ): Promise<HotBatch> {
    const offset = this.bytes;
    const meta = {
      checkpoints: extras.checkpoints,
      rejected: await this.keepRejected(extras.rejected, rejectedRoomBytes),
      counters: { ...extras.counters, records: batch.length, rejected: extras.rejected.length },
    };
    await this.writer.append(batch, runs, meta);
    return { batch, runs, meta, offset, bytes: this.bytes - offset };
  }

  private async keepRejected(
    lines: readonly RejectedLine[],
    roomBytes: number,
  ): Promise<RejectedEntry | null> {
    let left = roomBytes;
    for (const line of lines) {
      const text = encodeRejectedLine(line);
      left -= text.length;
      if (left < 0) break;
      this.rejected ??= await this.createRejected();
      await this.rejected.add(text);
    }
    if (lines.length > 0) await this.rejected?.sync();
    return this.rejected?.entry(this.rejectedName) ?? null;
  }

  private async createRejected(): Promise<RejectedFile> {
    const { directory, agent, rejectedName } = this;
    await directory.makeDirectory(`${agent}/rejected`);
    const rejected = await RejectedFile.create(directory, `${agent}/${rejectedName}`);
    await directory.syncDirectory(`${agent}/rejected`);
    return rejected;
  }

  async close(): Promise<void> {
    await this.writer.close();
    await this.rejected?.close();
  }

  /** Closes the files after a failure. Ignores errors. */
  async abandon(): Promise<void> {
    await this.writer.close().catch(() => {});
    await this.rejected?.close().catch(() => {});
  }
}
