import {
  type AgentStore,
  BatchBuilder,
  checkpointKey,
  groupBy,
  fillTimes,
  lastPlacementTimes,
  type RejectedLine,
  type SourcePart,
  type WorkerPool,
} from '../../engine/index.js';
import type { CollectTally } from './logs/collect-counts.js';
import type { AgentDefinition } from '../definition/definition.js';
import { type DecodeSettings, rangesLeft, type LineRange } from '../decode/decode-task.js';
import { decodeLines, type DecodedBatch } from '../decode/lent-decoding.js';
import { keptPart, toRejectedLines, type RejectedPlaces } from '../decode/rejected-lines.js';
import type { FollowedFile } from './logs/followed-file.js';
import type { GatheredLines, LineFrame } from './line-frame.js';
import { headersOf } from '../decode/table-headers.js';
import {
  checkpointAt,
  contentBehind,
  type Reading,
  type SourcePosition,
} from '../sources/source-position.js';
import type { LineProblems } from './line-problems.js';
import type { Written } from '../../engine/times/timestamp.js';

/** Where and how a collector's lines are stored. */
export interface CommitTarget {
  readonly store: AgentStore;
  readonly settings: DecodeSettings;
  readonly workers: WorkerPool;
  readonly now: () => number;
  readonly tally: CollectTally;
  readonly problems: LineProblems;
}

/** A file's part in a commit. */
interface FilePart {
  readonly file: FollowedFile;
  position: SourcePosition;
  rows: number;
  /** NULs that were left out before the lines were decoded. */
  nulBytes: number;
  readonly rejected: RejectedLine[];
  readonly path: string;
}

/**
 * Decodes the lines of a frame and commits the records together with the new positions of their files. The positions of the
 * `FollowedFile`s change only once the commit is durable. After a failure it is unknown what was stored: the store's
 * checkpoints have to be loaded again.
 */
export async function commitFrame(target: CommitTarget, frame: LineFrame): Promise<void> {
  const { settings, workers } = target;
  const written = { byMs: target.now() };
  // Within a file, lines keep the order in which they were read.
  let lines = [...groupBy(frame.lines, ({ file }) => file).values()].flat();
  let left = rangesOf(lines, frame.bytes, written, settings.definition);
  while (lines.length > 0) {
    const decoded = await decodeLines(workers, { settings, ranges: left }, frame.bytes, frame.lent);
    frame.bytes = decoded.bytes;
    try {
      const { parts, taken } = takeLines(lines, left, decoded, settings.definition);
      await store(target, [...parts.values()], decoded);
      lines = lines.slice(taken);
      left = rangesLeft(left, decoded.ranges, decoded.years);
    } finally {
      // The batch is not read after it has been stored.
      decoded.batch?.lease?.free();
    }
  }
}

/** The lines to decode, each with what must be known where they begin. */
function rangesOf(
  lines: readonly GatheredLines[],
  bytes: Uint8Array,
  written: Written,
  definition: AgentDefinition,
): LineRange[] {
  const headers = headersOf(definition);
  let last: FollowedFile | undefined;
  let reading: Reading | undefined;
  return lines.flatMap(({ file, start, end, continuesLine, reason, encoding }): LineRange[] => {
    if (file !== last) reading = file.position!.reading;
    last = file;
    if (reason !== null) return [];
    const place = { start, end, captures: file.name.captures, encoding };
    const range = { ...place, written, continuesLine, reading };
    if (headers !== null) reading = headers.behind(bytes, range);
    return [range];
  });
}

interface Taken {
  readonly parts: ReadonlyMap<FollowedFile, FilePart>;
  /** Number of lines, from the first, that are finished. */
  readonly taken: number;
}

/** Assembles each file's part of the commit. `ranges` are those of the lines to decode, in order. */
function takeLines(
  left: readonly GatheredLines[],
  ranges: readonly LineRange[],
  { bytes, ranges: decoded }: DecodedBatch,
  definition: AgentDefinition,
): Taken {
  const parts = new Map<FollowedFile, FilePart>();
  let taken = 0;
  let next = 0;
  for (const lines of left) {
    const done = decoded[next];
    if (lines.reason === null && done === undefined) break;
    const part = partOf(parts, lines.file);
    if (lines.reason !== null || done === undefined) {
      takeRejected(part, lines, bytes, definition);
      taken++;
      continue;
    }
    const { start, written } = ranges[next++]!;
    part.rows += done.rows;
    if (done.rejected.reasons.length > 0)
      keepRejected(part, lines, done.rejected, bytes, definition, written);
    const isWhole = done.reached === lines.end;
    const content = bytes.subarray(start, done.reached);
    // Of a hole, the frame has only the beginning.
    const leftOutBytes = isWhole ? lines.contentBytes - (lines.end - lines.start) : 0;
    part.nulBytes += leftOutBytes;
    const tail = isWhole ? lines.tail : null;
    part.position = {
      ...part.position,
      ...contentBehind(part.position, content, content.length + leftOutBytes, tail),
      endsInLine: isWhole && lines.endsInLine,
      packedBytes: lines.packedBytes ?? null,
      reading: done.reading ?? part.position.reading,
    };
    if (!isWhole) break;
    taken++;
  }
  return { parts, taken };
}

function keepRejected(
  part: FilePart,
  lines: GatheredLines,
  rejected: RejectedPlaces,
  bytes: Uint8Array,
  definition: AgentDefinition,
  { byMs }: Written,
): void {
  const base = lines.offset - lines.start;
  const origin = { definition, file: part.path, base, writtenMs: () => byMs };
  for (const each of toRejectedLines(rejected, bytes, origin))
    part.rejected.push({ ...each, line: each.line.slice() });
}

function partOf(parts: Map<FollowedFile, FilePart>, file: FollowedFile): FilePart {
  const known = parts.get(file);
  if (known !== undefined) return known;
  const part: FilePart = {
    file,
    position: file.position!,
    rows: 0,
    nulBytes: 0,
    rejected: [],
    path: file.path,
  };
  parts.set(file, part);
  return part;
}

/** Takes an overlong line, of which only the beginning is kept. */
function takeRejected(
  part: FilePart,
  lines: GatheredLines,
  bytes: Uint8Array,
  definition: AgentDefinition,
): void {
  const line = bytes.slice(lines.start, lines.end);
  const kept = keptPart(definition, line);
  part.rejected.push({ reason: lines.reason!, file: part.path, offset: lines.offset, line: kept });
  const behind = contentBehind(part.position, line, lines.contentBytes, lines.tail);
  part.position = { ...part.position, ...behind, endsInLine: lines.endsInLine };
}

async function store(
  { store: agentStore, settings, now, tally, problems }: CommitTarget,
  parts: readonly FilePart[],
  decoded: DecodedBatch,
): Promise<void> {
  const { schema } = agentStore;
  const batch = decoded.batch ?? new BatchBuilder(schema).finish();
  const sources: SourcePart[] = parts.map(({ file, rows }) => ({
    rows,
    previousTimeMs: file.position!.lastTimeMs,
    catchingUp: file.position!.offset < file.position!.unseenTo,
  }));
  fillTimes(schema, batch, decoded.untimed, now(), sources);
  const lastTimes = lastPlacementTimes(schema, batch, now(), sources);
  const positions = parts.map((part, i) => ({
    ...part.position,
    lastTimeMs: lastTimes[i]!,
    records: part.position.records + part.rows,
    rejected: part.position.rejected + part.rejected.length,
  }));
  const checkpoints = parts.map(({ file, path }, i) => checkpointAt(positions[i]!, { ...file.state, path }));
  const inputBytes = parts.reduce(
    (sum, { file, position }) => sum + position.offset - file.position!.offset,
    0,
  );
  const { unreadableValues, replacedBytes } = decoded;
  const rejected = parts.flatMap((part) => part.rejected);
  const result = await agentStore.append(
    batch,
    {
      checkpoints,
      rejected,
      rejectedBytesMax: settings.definition.rejectedBytesMax,
      parts: sources,
      asOf: parts.reduce((least, { file }) => Math.min(least, file.beingRead!.asOf), Infinity),
      counters: { unreadableValues, replacedBytes, inputBytes },
    },
    'live',
  );
  parts.forEach(({ file }, i) => {
    file.observe({ kind: 'stored', position: { ...positions[i]!, key: checkpointKey(checkpoints[i]!) } });
  });
  for (const { reason } of rejected) tally.reject(reason);
  const nulBytes = parts.reduce((sum, part) => sum + part.nulBytes, decoded.nulBytes);
  const notKept = result.rejected - result.rejectedKept;
  tally.nulBytes += nulBytes;
  tally.skippedLines += decoded.skippedLines;
  tally.maskedTexts += decoded.maskedTexts;
  tally.notKept += notKept;
  problems.add({ rejected, notKept, unreadable: decoded.unreadable, nulBytes });
  tally.records += batch.length;
  tally.bytes += inputBytes;
  tally.commit(now());
}
