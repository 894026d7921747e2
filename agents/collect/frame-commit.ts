import {
  type AgentStore,
  BatchBuilder,
  checkpointKey,
  lastPlacementTimes,
  type RejectedLine,
  type SourcePart,
  type WorkerPool,
} from '../../engine/index.js';
import type { CollectTally } from './logs/collect-counts.js';
import { decodeIn, type WithBatch } from '../frames/lent-decoding.js';
import { collectOnPool, type CollectedLines, type CollectSettings } from '../frames/collect-task.js';
import type { FollowedFile } from './logs/followed-file.js';
import type { GatheredLines, LineFrame } from './line-frame.js';
import { checkpointAt, positionBehind, type SourcePosition } from './logs/source-position.js';
import type { NotKeptReport } from './not-kept-report.js';
import { hasUndatedTimes } from '../definition/definition.js';

/** What stores the lines of a collector. */
export interface CommitTarget {
  readonly store: AgentStore;
  readonly settings: CollectSettings;
  readonly workers: WorkerPool;
  readonly now: () => number;
  readonly tally: CollectTally;
  readonly notKept: NotKeptReport;
}

/** What became of a frame's lines, with their records. */
type CollectedFrame = WithBatch<CollectedLines>;

/** What one file gives to a commit. */
interface FilePart {
  readonly file: FollowedFile;
  position: SourcePosition;
  rows: number;
  readonly rejected: RejectedLine[];
  readonly path: string;
}

/**
 * Stores the lines of a frame, and with them how far each file is stored. Files' positions follow once that is durable.
 * After a failure nothing is known of what was stored: the store has to be asked.
 */
export async function commitFrame(target: CommitTarget, frame: LineFrame): Promise<void> {
  const { settings, workers, now } = target;
  let left = inOrderOfFiles(frame.lines);
  let from = 0;
  while (left.length > 0) {
    const writtenMs = now();
    const ranges = left
      .filter(({ reason }) => reason === null)
      .map((lines, i) => ({
        start: i === 0 && from > 0 ? from : lines.start,
        end: lines.end,
        captures: lines.file.name.captures,
        atBeginning: lines.offset === 0 && !(i === 0 && from > 0),
        continuesLine: lines.continuesLine && !(i === 0 && from > 0),
        writtenMs,
      }));
    const start = ranges[0]?.start ?? 0;
    const end = ranges.at(-1)?.end ?? 0;
    const { bytes, lent } = frame;
    const memory = { bytes, lent, start, end, fields: settings.definition.schema.fields.length };
    const job = { settings, ranges };
    const collected = await decodeIn(memory, (lines) => collectOnPool(workers, { ...job, lines }));
    frame.bytes = collected.bytes;
    try {
      const written = hasUndatedTimes(settings.definition) ? { writtenMs } : {};
      const { parts, taken, reached } = takeLines(left, collected, from, written);
      await store(target, [...parts.values()], collected);
      left = left.slice(taken);
      from = reached;
    } finally {
      // Nobody reads the records any more once they are stored.
      collected.batch?.lease?.free();
    }
  }
}

/** Lines of one file stand together, in the order in which they were read. */
function inOrderOfFiles(lines: readonly GatheredLines[]): GatheredLines[] {
  const byFile = new Map<FollowedFile, GatheredLines[]>();
  for (const each of lines) {
    const known = byFile.get(each.file);
    if (known === undefined) byFile.set(each.file, [each]);
    else known.push(each);
  }
  return [...byFile.values()].flat();
}

interface Taken {
  readonly parts: ReadonlyMap<FollowedFile, FilePart>;
  /** Lines that are done with, from the first on. */
  readonly taken: number;
  /** Of the next ones, where to go on; 0 for their beginning. */
  readonly reached: number;
}

function takeLines(
  left: readonly GatheredLines[],
  collected: CollectedFrame,
  from: number,
  written: Pick<RejectedLine, 'writtenMs'>,
): Taken {
  const parts = new Map<FollowedFile, FilePart>();
  let taken = 0;
  let next = 0;
  for (const lines of left) {
    if (lines.reason !== null) {
      takeRejected(partOf(parts, lines.file), lines, collected.bytes);
      taken++;
      continue;
    }
    const done = collected.ranges[next];
    if (done === undefined) return { parts, taken, reached: taken === 0 ? from : 0 };
    const start = next === 0 && from > 0 ? from : lines.start;
    next++;
    const part = partOf(parts, lines.file);
    part.rows += done.rows;
    const { bytes } = collected;
    const base = lines.offset - lines.start;
    const { reasons, starts, ends } = done.rejected;
    reasons.forEach((reason, i) =>
      part.rejected.push({
        reason,
        file: part.path,
        offset: base + starts[i]!,
        line: bytes.slice(starts[i], ends[i]),
        ...written,
      }),
    );
    const whole = done.reached === lines.end;
    const tail = whole ? lines.tail : null;
    const content = bytes.subarray(start, done.reached);
    const position = positionBehind(part.position, content, content.length, tail);
    part.position = {
      ...position,
      endsInLine: whole && lines.endsInLine,
      packedBytes: lines.packedBytes ?? null,
    };
    if (!whole) return { parts, taken, reached: done.reached };
    taken++;
  }
  return { parts, taken, reached: 0 };
}

function partOf(parts: Map<FollowedFile, FilePart>, file: FollowedFile): FilePart {
  const known = parts.get(file);
  if (known !== undefined) return known;
  const part: FilePart = { file, position: file.position!, rows: 0, rejected: [], path: file.path };
  parts.set(file, part);
  return part;
}

/** A line that is too long: only its beginning is kept. */
function takeRejected(part: FilePart, lines: GatheredLines, bytes: Uint8Array): void {
  const line = bytes.slice(lines.start, lines.end);
  part.rejected.push({ reason: lines.reason!, file: part.path, offset: lines.offset, line });
  const position = positionBehind(part.position, line, lines.contentBytes, lines.tail);
  part.position = { ...position, endsInLine: lines.endsInLine };
}

async function store(
  { store: agentStore, settings, now, tally, notKept }: CommitTarget,
  parts: readonly FilePart[],
  collected: CollectedFrame,
): Promise<void> {
  const { schema } = agentStore;
  const batch = collected.batch ?? new BatchBuilder(schema).finish();
  const sources: SourcePart[] = parts.map(({ file, rows }) => ({
    rows,
    previousTimeMs: file.position!.lastTimeMs,
    catchingUp: file.position!.offset < file.position!.unseenTo,
  }));
  const lastTimes = lastPlacementTimes(schema, batch, now(), sources);
  const positions = parts.map((part, i) => ({
    ...part.position,
    lastTimeMs: lastTimes[i]!,
    records: part.position.records + part.rows,
    rejected: part.position.rejected + part.rejected.length,
  }));
  const checkpoints = parts.map(({ file, path }, i) => checkpointAt(positions[i]!, file.inode, path));
  const inputBytes = parts.reduce(
    (sum, { file, position }) => sum + position.offset - file.position!.offset,
    0,
  );
  const { unreadableValues, replacedBytes } = collected;
  const result = await agentStore.append(
    batch,
    {
      checkpoints,
      rejected: parts.flatMap(({ rejected }) => rejected),
      rejectedBytesMax: settings.definition.rejectedBytesMax,
      parts: sources,
      asOf: parts.reduce((least, { file }) => Math.min(least, file.asOf), Infinity),
      counters: { unreadableValues, replacedBytes, inputBytes },
    },
    'live',
  );
  parts.forEach(({ file, rejected }, i) => {
    file.position = { ...positions[i]!, key: checkpointKey(checkpoints[i]!) };
    file.hasStored = true;
    for (const { reason } of rejected) tally.reject(reason);
  });
  tally.notKept += result.rejected - result.rejectedKept;
  notKept.add(result.rejected - result.rejectedKept);
  tally.records += batch.length;
  tally.bytes += inputBytes;
  tally.commits++;
}
