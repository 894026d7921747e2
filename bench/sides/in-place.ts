import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Question } from '../question.js';
import type { SideOptions } from '../side.js';
import { LogstrataSide } from './logstrata.js';

/** Logstrata over the Parquet files that the side `duckdb-files` has written, with or without an index. */
export class InPlaceSide extends LogstrataSide {
  constructor(private readonly place: SideOptions) {
    super(place);
  }

  override async load(): Promise<void> {
    const folder = join(this.place.folder, '../duckdb-files');
    const names = (await readdir(folder)).filter((name) => name.endsWith('.parquet')).sort();
    await this.open();
    const store = this.opened();
    const adds = names.map((name) => ({
      path: join(folder, name),
      format: 'parquet' as const,
      constants: {},
    }));
    const { problems } = await store.attach({ adds, moves: [], removes: [] });
    if (problems.length > 0) throw problems[0]!.error;
    if (this.place.side === 'logstrata-in-place-indexed') {
      const indexed = await store.indexAttached();
      if (indexed.problems.length > 0) throw indexed.problems[0]!.error;
    }
    await this.close();
  }

  override answers(question: Question): boolean {
    return question.isUnindexed !== true;
  }
}
