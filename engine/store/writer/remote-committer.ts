import type { RecordBatch } from '../../columns/column.js';
import type { Schema } from '../../terms/schema.js';
import { encodeBatch } from '../hot/batch-codec.js';
import type { AttachedChanges, AttachedResult, AttachingCommitter } from '../attached/change-lists.js';
import type { AppendResult, CommitExtras } from '../manifest/commit.js';
import type { PartitionCount, PartitionStart, Publication } from '../manifest/committer.js';
import type { FarChanges } from '../manifest/far-changes.js';
import type { ChannelClient } from './writer-channel.js';
import { encodeExtras } from './writer-operations.js';

/** Commits through the writer in another process. A unit's files are built by this process, on the same disk. */
export class RemoteCommitter implements AttachingCommitter {
  constructor(
    private readonly channel: ChannelClient,
    private readonly agent: string,
    readonly schema: Schema,
    readonly schemaVersion: number,
  ) {}

  async begin(): Promise<string> {
    return (await this.ask('begin')) as string;
  }

  async reserve(id: string, counts: readonly PartitionCount[]): Promise<readonly PartitionStart[]> {
    return (await this.ask('reserve', { id, counts })) as readonly PartitionStart[];
  }

  async publish(id: string, publication: Publication): Promise<void> {
    await this.ask('publish', { id, publication });
  }

  async end(id: string): Promise<void> {
    await this.ask('end', { id });
  }

  async append(batch: RecordBatch, extras: CommitExtras, placement: 'live' | 'load'): Promise<AppendResult> {
    const payload = encodeBatch(this.schema, batch);
    const sent = encodeExtras({ ...extras, schemaVersion: this.schemaVersion });
    return (await this.ask('append', { extras: sent, placement }, payload)) as AppendResult;
  }

  async attach(changes: AttachedChanges): Promise<AttachedResult> {
    return (await this.ask('attach', { changes })) as AttachedResult;
  }

  async changeFar(changes: FarChanges): Promise<void> {
    await this.ask('change_far', { changes });
  }

  async seal(): Promise<void> {
    await this.ask('seal');
  }

  private async ask(operation: string, args: object = {}, payload?: Uint8Array): Promise<unknown> {
    return this.channel.request(operation, { agent: this.agent, ...args }, payload);
  }
}
