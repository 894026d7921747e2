import { comparePositions, hourMs, type Position } from '../cursor.js';
import type { HotFile } from '../storage/agent-state.js';
import { CommittedValues } from '../storage/committed-values.js';
import type { HotDamage } from '../storage/hot-segment-file.js';
import { HotRows } from '../storage/hot-rows.js';
import type { HotEntry, SegmentEntry } from '../storage/manifest.js';
import { sealHotFiles } from '../storage/seal.js';
import type { Coverage } from './coverage.js';
import type { Findings, HotFinding } from './examination.js';
import { lostRun, type LostRecords } from './lost-records.js';
import type { Quarantine } from './quarantine.js';
import type { RepairContext } from './repair.js';

/** The hot files of a repair: those that are whole stay, of the others what is whole is sealed. */
export class HotSalvage {
  /** Those of the manifest, with what the sealed batches add to them. */
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

  /** Seals what has to be; damaged files go to the quarantine. */
  async seal(quarantine: Quarantine): Promise<readonly SegmentEntry[]> {
    const files: HotFile[] = [];
    for (const finding of this.found.hot) {
      if (!this.found.isRebuilt && finding.damages.length === 0) {
        this.kept.push(finding.entry);
        continue;
      }
      if (finding.damages.length > 0) quarantine.add(finding.file, finding.damages[0]!.reason);
      const file = this.take(finding);
      if (file.rows.rowCount > 0) files.push(file);
    }
    const segments = await sealHotFiles(this.context, files);
    for (const { file, damages } of this.found.hot)
      for (const damage of damages) this.lost.push(...this.lostIn(file, damage));
    return segments;
  }

  /** The batches that no sealed segment has yet. */
  private take({ entry, schema, batches }: HotFinding): HotFile {
    const rows = new HotRows(schema, entry.file);
    for (const { batch, runs, meta, offset } of batches) {
      if (runs.some((run) => this.coverage.touches(run))) continue;
      rows.append(batch, runs);
      for (const run of runs) this.coverage.add(run);
      if (meta.rejected !== null) this.takeRejected(meta.rejected.file, meta.rejected);
      if (offset < entry.foldedBytes) continue;
      this.values.applyRuns(runs);
      this.values.applyCheckpoints(meta.checkpoints);
      this.values.applyCounters(meta.counters);
    }
    return { entry, schema, rows, endBytes: 0, rejected: null };
  }

  /** A later batch knows of more lines of the same file. */
  private takeRejected(file: string, entry: Findings['rejected'][number]['entry']): void {
    if (this.found.isRebuilt) return;
    const others = this.found.rejected.filter((known) => known.entry.file !== file);
    this.found.rejected = [...others, { entry, listed: true }];
  }

  /** The positions between what is whole before a damage and behind it, where they lie in one partition. */
  private lostIn(file: string, { after, before, reason }: HotDamage): LostRecords[] {
    if (after === null || before === null || after.partition !== before.partition)
      return [lostBetween(file, reason, after, before)];
    const rows = before.ordinal - after.ordinal - 1;
    if (rows <= 0) return [lostBetween(file, reason, after, before)];
    const run = { partition: after.partition, firstOrdinal: after.ordinal + 1, firstRow: 0, rows };
    return this.coverage.missing(run).map((missing) => lostRun(file, reason, missing));
  }
}

/** How much stood there can't be told: records of a batch may lie in several partitions. */
function lostBetween(
  file: string,
  reason: string,
  after: Position | null,
  before: Position | null,
): LostRecords {
  const known = [after, before].filter((position) => position !== null).sort(comparePositions);
  const fromMs = (known[0]?.partition ?? 0) * hourMs;
  const untilMs = known.length === 0 ? 0 : (known.at(-1)!.partition + 1) * hourMs;
  return { file, reason, first: null, last: null, records: null, fromMs, untilMs };
}
