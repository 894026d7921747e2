import type { ReaderConfig } from '../../../agents/definition/reader-config.js';
import { openReader, WorkerPool } from '../../../engine/index.js';
import { openWriterDoor } from '../options/writer-door.js';

/** The agents of the writer that a reader would query, with their numbers of records. */
export interface CheckedWriter {
  readonly writer: string;
  readonly agents: readonly {
    readonly name: string;
    readonly records: number;
    readonly farRecords: number;
  }[];
}

/** Connects to the writer of a reader's configuration. Throws `unavailable` where it can't be reached or refuses. */
export async function checkWriter(reader: ReaderConfig): Promise<CheckedWriter> {
  const door = await openWriterDoor(reader);
  try {
    const workers = new WorkerPool(0);
    const archive = await openReader({ door, cluster: undefined, lagMsMax: reader.lagMs, workers });
    const agents = [];
    const { served } = await archive.agents();
    for (const name of served.toSorted()) agents.push({ name, ...(await archive.counts(name)) });
    return { writer: reader.writer, agents };
  } finally {
    door.close();
  }
}
