import type { ReaderConfig } from '../../../agents/definition/reader-config.js';
import { openReader, WorkerPool } from '../../../engine/index.js';
import { openWriterDoor } from '../options/writer-door.js';

/** What a reader on another machine may answer for. */
export interface CheckedWriter {
  readonly writer: string;
  readonly agents: readonly {
    readonly name: string;
    readonly records: number;
    readonly farRecords: number;
  }[];
}

/** Asks the writer that a configuration names. Throws `unavailable` where it can't be reached or refuses. */
export async function checkWriter(reader: ReaderConfig): Promise<CheckedWriter> {
  const door = await openWriterDoor(reader);
  try {
    const workers = new WorkerPool(0);
    const archive = await openReader({ door, cluster: undefined, lagMsMax: reader.lagMs, workers });
    const agents = [];
    for (const name of await archive.agents()) agents.push({ name, ...(await archive.counts(name)) });
    return { writer: reader.writer, agents };
  } finally {
    door.close();
  }
}
