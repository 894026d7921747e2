import type { HotFile } from '../store/reading/agent-state.js';
import { CommittedValues } from '../store/manifest/committed-values.js';
import { HotRows } from '../store/reading/hot-rows.js';
import type { HotEntry, SegmentEntry } from '../store/manifest/manifest.js';
import { sealHotFiles } from '../store/writer/seal.js';
import type { Coverage } from '../store/manifest/coverage.js';
import { staysHot, type Findings, type HotFinding } from './examination.js';
import { lostInHot, type LostRecords } from './lost-records.js';
import type { Quarantine } from './quarantine.js';
import type { RepairContext } from './repair-context.js';

/** The hot files of a repair: undamaged ones are kept, and the undamaged batches of others are sealed. */
export class HotSalvage {
  /** The values of the manifest plus those of the sealed batches. */
  readonly values: CommittedValues;
  readonly kept: HotEntry[] = [];
  readonly lost: LostRecords[] = [];

  constructor(
    private readonly context: RepairContext,
    private readonly found: Findings,
    private readonly coverage: Coverage,
  ) {
    this.values = new CommittedValues(found.base);
  }

  /** Seals the undamaged batches of damaged files, and adds these files to the quarantine. */
  async seal(quarantine: Quarantine): Promise<readonly SegmentEntry[]> {
    const files: HotFile[] = [];
    for (const finding of this.found.hot) {
      if (staysHot(this.found, finding)) {
        this.kept.push(finding.entry);
        continue;
      }
      if (finding.damages.length > 0) quarantine.add(finding.file, finding.damages[0]!.reason);
      const file = this.take(finding);
      if (file.rows.rowCount > 0) files.push(file);
    }
    const segments = await sealHotFiles(this.context, files);
    for (const { entry, damages } of this.found.hot)
      for (const damage of damages) this.lost.push(...lostInHot(entry, damage, this.coverage));
    return segments;
  }

  /** The batches whose rows are in no sealed segment. */
  private take({ entry, schema, batches }: HotFinding): HotFile {
    const rows = new HotRows(schema, entry.file);
    for (const { batch, runs, meta, offset } of batches) {
      if (runs.some((run) => this.coverage.touches(run))) continue;
      rows.append(batch, runs);
      for (const run of runs) this.coverage.add(run);
      if (offset < entry.foldedBytes) continue;
      this.values.applyRuns(runs);
      this.values.applyCheckpoints(meta.checkpoints);
      this.values.applyCounters(meta.counters);
    }
    return { entry, schema, rows, endBytes: 0, rejected: null };
  }
}
