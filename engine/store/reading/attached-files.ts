import { compareRuns } from '../manifest/run-list.js';
import type { Schema } from '../../core/schema.js';
import { type AttachedFile, readAttachedList, type OpenList } from '../attached/attached-list.js';
import { Descriptions } from '../attached/descriptions.js';
import type { SpanPlacement } from '../attached/span-placements.js';
import type { ForeignMeans } from '../attached/foreign-work.js';
import type { Directory } from '../disk/directory.js';
import type { Manifest } from '../manifest/manifest.js';
import { AttachedSegment } from './attached-segment.js';
import type { BufferPool } from './buffer-pool.js';
import { RunColumnsBuilder } from '../manifest/run-columns.js';
import type { RowGroup, SnapshotRun, SnapshotRuns } from './snapshot.js';

/** Up to this many runs are kept as objects, which are faster to read. More are kept in typed arrays, which take less memory. */
const runObjectsMax = 50_000;

interface OpenFile {
  readonly segment: AttachedSegment;
  rowGroups: readonly RowGroup[];
}

/** The attached files of an agent that the newest manifest names, opened, and their runs. */
export class AttachedFiles {
  readonly #descriptions: Descriptions;
  #lists: readonly OpenList[] = [];
  /** By the file's id. */
  #open = new Map<string, OpenFile>();
  /** First partition whose rows are shown: retention hides those below it. */
  #liveFrom = 0;
  /** The live runs of all files; null until they are needed again. */
  #runs: SnapshotRuns | null = null;

  constructor(
    private readonly directory: Directory,
    private readonly agent: string,
    private readonly pool: BufferPool,
    private readonly means: ForeignMeans,
  ) {
    this.#descriptions = new Descriptions(directory, agent);
  }

  get lists(): readonly OpenList[] {
    return this.#lists;
  }

  files(): AttachedFile[] {
    return this.#lists.flatMap(({ files }) => files);
  }

  /**
   * Opens what a newer manifest names. Lists that are known already are not read again.
   *
   * @returns the files that it no longer names; the caller closes them when no snapshot reads them
   */
  async take(manifest: Manifest, schema: Schema): Promise<AttachedSegment[]> {
    const known = new Map(this.#lists.map((open) => [open.list.file, open]));
    const lists: OpenList[] = [];
    for (const list of manifest.attached) {
      const files = known.get(list.file)?.files ?? (await readAttachedList(this.directory, this.agent, list));
      lists.push({ list, files });
    }
    const open = new Map<string, OpenFile>();
    for (const file of lists.flatMap(({ files }) => files)) open.set(file.id, this.#opened(file, schema));
    const liveFrom = manifest.attachedFrom ?? 0;
    const isSame = open.size === this.#open.size && [...open.keys()].every((id) => this.#open.has(id));
    if (!isSame || liveFrom !== this.#liveFrom) this.#runs = null;
    const gone = [...this.#open].filter(([id]) => !open.has(id)).map(([, { segment }]) => segment);
    this.#lists = lists;
    this.#open = open;
    this.#liveFrom = liveFrom;
    return gone;
  }

  #opened(file: AttachedFile, schema: Schema): OpenFile {
    const before = this.#open.get(file.id);
    if (before === undefined) {
      const segment = new AttachedSegment(
        this.directory,
        this.agent,
        file,
        this.#descriptions,
        this.pool,
        this.means,
      );
      return { segment, rowGroups: segment.rowGroups(schema) };
    }
    before.segment.take(file);
    return before;
  }

  /** Changes the schema that the files are shown under. */
  show(schema: Schema): void {
    for (const open of this.#open.values()) open.rowGroups = open.segment.rowGroups(schema);
    this.#runs = null;
  }

  /** For each file, the placement of the rows of each of its spans. */
  placements(): (readonly SpanPlacement[])[] {
    return [...this.#open.values()].map(({ segment }) => segment.placements);
  }

  /** Live runs, ascending by position. */
  runs(): SnapshotRuns {
    return (this.#runs ??= this.#sortedRuns());
  }

  #sortedRuns(): SnapshotRuns {
    let count = 0;
    this.#eachRun(() => count++);
    if (count < runObjectsMax) {
      const runs: SnapshotRun[] = [];
      this.#eachRun((run) => runs.push(run));
      return runs.sort(compareRuns);
    }
    const columns = new RunColumnsBuilder<RowGroup>(count);
    this.#eachRun((run) => columns.add(run));
    return columns.finish();
  }

  #eachRun(take: (run: SnapshotRun) => void): void {
    for (const { segment, rowGroups } of this.#open.values())
      segment.eachRun(rowGroups, this.#liveFrom, take);
  }

  close(): void {
    for (const { segment } of this.#open.values()) segment.close();
    this.#open.clear();
    this.#lists = [];
    this.#runs = null;
  }
}
