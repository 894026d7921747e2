import { assert, assertNever, type Checkpoint } from '../../../engine/index.js';
import type { CompressedSource } from './compressed-source.js';
import type { CutBack } from './cut-back.js';
import type { FileStatus } from './log-files.js';
import type { LogName } from './log-names.js';
import type { SourcePosition } from './source-position.js';

/** Where a log was seen last. */
export interface Sighting {
  readonly path: string;
  readonly name: LogName;
  readonly status: FileStatus;
}

/** What is known of the content of a log: which content it is, and how far it is stored. */
export type LogContent = UnreadContent | FollowedContent | PackedContent;

/**
 * Content that is not read: `new` when it has yet to be found out what it is, `waiting` when that can't be told yet, `done` when all of it is
 * stored, `history` when it is older than the agent.
 */
export interface UnreadContent {
  readonly kind: 'new' | 'waiting' | 'done' | 'history';
}

/** A plain file that is read on as it grows. */
export interface FollowedContent {
  readonly kind: 'follow';
  /** How far it is stored. */
  readonly position: SourcePosition;
  /** The `asOf` of the checkpoints by which the position was found. */
  readonly asOf: number;
  /** What it begins with, as far as it was seen, stored or not; at most `headBytesMax`. */
  readonly begun: Uint8Array;
  /** The longest that it was ever seen. */
  readonly seenBytes: number;
  /** How long it was when its content was last recognised. What it has beyond may be other content. */
  readonly provenBytes: number;
  /** What stands behind the last whole record; null for nothing. */
  readonly rest: Rest | null;
  /** How far a line that is too long was searched for its end. */
  readonly searchedTo: number;
}

/** A compressed file, which is read to its end once. */
export interface PackedContent {
  readonly kind: 'packed';
  readonly position: SourcePosition;
  readonly asOf: number;
  readonly source: CompressedSource;
}

/** Bytes behind the last whole record. */
export interface Rest {
  readonly bytes: number;
  /** Since when there have been so many. */
  readonly sinceMs: number;
  /** They end inside a line. */
  readonly endsInLine: boolean;
}

/** Why a log could not be read, and when it is tried again. */
export interface Failure {
  readonly message: string;
  readonly retryAtMs: number;
  readonly retryMs: number;
}

/** All that is known of one file of an agent. */
export interface LogState extends Sighting {
  /** Since when no name leads to it; null while one does. */
  readonly goneSinceMs: number | null;
  /** When its name changed last. */
  readonly movedMs: number;
  /** Since when its size and time have been what they are. */
  readonly unchangedSinceMs: number;
  /** When lines of it were read last. */
  readonly grownMs: number;
  /** There may be something to find out or to read. */
  readonly mayHaveMore: boolean;
  /** Its length when the agent was followed first; 0 when it was not there, and once its content was cut off. */
  readonly thereBytes: number;
  /** This process has stored something of it. */
  readonly hasStored: boolean;
  /** Null while it can be read. */
  readonly failure: Failure | null;
  readonly content: LogContent;
}

/** What a file turned out to be. */
export type Identity =
  | {
      readonly kind: 'follow';
      readonly position: SourcePosition;
      /** The checkpoint that it was recognised by; null for none. */
      readonly known: Checkpoint | null;
      /** What the content begins with. */
      readonly head: Uint8Array;
      /** Its disk has lost what was read of it. */
      readonly cutBack?: CutBack;
    }
  | { readonly kind: 'packed'; readonly source: CompressedSource; readonly head: Uint8Array }
  | { readonly kind: 'done' | 'history' | 'waiting' };

/** What can happen to a log, or be found out about it. */
export type Observation =
  /** A name leads to it. */
  | ({ readonly kind: 'seen'; readonly nowMs: number } & Sighting)
  /** It was opened, and has this length and time. */
  | { readonly kind: 'measured'; readonly status: FileStatus }
  /** The whole folder was looked at, and it may still be there. */
  | { readonly kind: 'surveyed' }
  /** The whole folder was looked at, and no name leads to it. */
  | { readonly kind: 'missed'; readonly nowMs: number }
  | { readonly kind: 'identified'; readonly identity: Identity; readonly asOf: number }
  /** It was read up to `reachedBytes`, which was its end with `isEnd`. `begun` is what it begins with, where that was read. */
  | {
      readonly kind: 'read';
      readonly reachedBytes: number;
      readonly isEnd: boolean;
      readonly begun: Uint8Array | null;
    }
  /** Whole lines of it were gathered for a commit. */
  | { readonly kind: 'gathered' }
  /** Its end was reached, and so many bytes stand behind the last whole record. */
  | {
      readonly kind: 'ended';
      readonly restBytes: number;
      readonly endsInLine: boolean;
      readonly nowMs: number;
    }
  /** The end of a line that is too long was not found before `searchedTo`, where the file ends. */
  | { readonly kind: 'searched'; readonly searchedTo: number }
  /** Its turn to be read is over. */
  | {
      readonly kind: 'turned';
      readonly mayHaveMore: boolean;
      readonly hasGrown: boolean;
      readonly nowMs: number;
    }
  /** A compressed file has no content. */
  | { readonly kind: 'empty' }
  /** It is durably stored up to a position. */
  | { readonly kind: 'stored'; readonly position: SourcePosition }
  /** Something was written to it. */
  | { readonly kind: 'written' }
  /** The content that was read is not there any more. */
  | { readonly kind: 'replaced' }
  /** It is unknown how far it is stored: it has to be found out again what it is. */
  | { readonly kind: 'doubted' }
  | { readonly kind: 'failed'; readonly message: string; readonly nowMs: number }
  | { readonly kind: 'succeeded' };

/** What follows from an observation. */
export interface Step {
  readonly state: LogState;
  /** A compressed file that is not read any more, to be closed. */
  readonly closes?: CompressedSource;
}

/** A failed file is tried again after this time, then after twice as long each time, up to the longest. */
const retryFirstMs = 1000;
const retryLongestMs = 60_000;

/** A file when it is seen first. `wasThere` says that the agent is followed only now, with the file there already. */
export function firstState(sighting: Sighting, nowMs: number, wasThere: boolean): LogState {
  const { path, name, status } = sighting;
  return {
    path,
    name,
    status,
    goneSinceMs: null,
    movedMs: 0,
    unchangedSinceMs: nowMs,
    grownMs: nowMs,
    mayHaveMore: true,
    thereBytes: wasThere ? status.sizeBytes : 0,
    hasStored: false,
    failure: null,
    content: { kind: 'new' },
  };
}

/** The state of a log after an observation. */
export function next(state: LogState, observation: Observation): Step {
  const { content } = state;
  switch (observation.kind) {
    case 'seen':
      return { state: seen(state, observation, observation.nowMs) };
    case 'measured':
      return { state: { ...state, status: observation.status } };
    case 'surveyed':
      return { state: content.kind === 'waiting' ? { ...state, mayHaveMore: true } : state };
    case 'missed':
      return {
        state: { ...state, mayHaveMore: true, goneSinceMs: state.goneSinceMs ?? observation.nowMs },
      };
    case 'identified': {
      const found = contentOf(observation.identity, observation.asOf, state.status.sizeBytes);
      return { state: { ...state, content: found, mayHaveMore: 'position' in found } };
    }
    case 'turned': {
      const { mayHaveMore, hasGrown, nowMs } = observation;
      return { state: { ...state, mayHaveMore, grownMs: hasGrown ? nowMs : state.grownMs } };
    }
    case 'stored':
      return stored(state, observation.position);
    case 'empty':
      return leave(state, { kind: 'done' });
    case 'written':
      return { state: { ...state, mayHaveMore: true } };
    case 'replaced':
      return leave({ ...state, mayHaveMore: true, hasStored: false, thereBytes: 0 }, { kind: 'new' });
    case 'doubted':
      if (content.kind === 'history') return { state };
      return leave({ ...state, mayHaveMore: true }, { kind: 'new' });
    case 'failed': {
      const { message, nowMs } = observation;
      const retryMs = Math.min(retryLongestMs, Math.max(retryFirstMs, 2 * (state.failure?.retryMs ?? 0)));
      const failure = { message, retryMs, retryAtMs: nowMs + retryMs };
      return { state: { ...state, failure, mayHaveMore: true } };
    }
    case 'succeeded':
      return { state: state.failure === null ? state : { ...state, failure: null } };
    case 'read':
    case 'gathered':
    case 'ended':
    case 'searched':
      assert(content.kind === 'follow', 'only followed content is read where it ends');
      return { state: withContent(state, readOn(content, observation)) };
    default:
      return assertNever(observation);
  }
}

function seen(state: LogState, { path, name, status }: Sighting, nowMs: number): LogState {
  const { sizeBytes, modifiedMs } = state.status;
  const hasChanged = status.sizeBytes !== sizeBytes || status.modifiedMs !== modifiedMs;
  const hasReturned = state.goneSinceMs !== null;
  const hasMoved = state.path !== path;
  const content = contentWhenSeen(state.content, status.sizeBytes, hasChanged || hasReturned);
  // So it is with most logs of a large folder, each time that it is looked at.
  if (!hasChanged && !hasReturned && !hasMoved) return withContent(state, content);
  return {
    ...state,
    path,
    name,
    status,
    goneSinceMs: null,
    unchangedSinceMs: hasChanged ? nowMs : state.unchangedSinceMs,
    movedMs: hasMoved ? nowMs : state.movedMs,
    mayHaveMore: true,
    content,
  };
}

function withContent(state: LogState, content: LogContent): LogState {
  return content === state.content ? state : { ...state, content };
}

function contentWhenSeen(content: LogContent, sizeBytes: number, mayBeOther: boolean): LogContent {
  if (content.kind === 'follow')
    return sizeBytes <= content.seenBytes ? content : { ...content, seenBytes: sizeBytes };
  // What had nothing to give may be another content now.
  const hadNothing = content.kind === 'done' || content.kind === 'history';
  return hadNothing && mayBeOther ? { kind: 'new' } : content;
}

function contentOf(identity: Identity, asOf: number, sizeBytes: number): LogContent {
  switch (identity.kind) {
    case 'follow': {
      const { position, head } = identity;
      const seenBytes = Math.max(sizeBytes, position.offset);
      const seenNow = { begun: head, seenBytes, provenBytes: seenBytes };
      return { kind: 'follow', position, asOf, ...seenNow, rest: null, searchedTo: 0 };
    }
    case 'packed':
      return { kind: 'packed', position: identity.source.position, asOf, source: identity.source };
    default:
      return { kind: identity.kind };
  }
}

function readOn(
  content: FollowedContent,
  observation: Extract<Observation, { kind: 'read' | 'gathered' | 'ended' | 'searched' }>,
): FollowedContent {
  switch (observation.kind) {
    case 'read': {
      const { reachedBytes, isEnd, begun } = observation;
      const provenBytes = isEnd ? reachedBytes : Math.max(content.seenBytes, reachedBytes);
      return { ...content, seenBytes: reachedBytes, provenBytes, begun: begun ?? content.begun };
    }
    case 'gathered': {
      const isFresh = content.rest === null && content.searchedTo === 0;
      return isFresh ? content : { ...content, rest: null, searchedTo: 0 };
    }
    case 'ended': {
      const { restBytes: bytes, endsInLine, nowMs: sinceMs } = observation;
      if (bytes === (content.rest?.bytes ?? 0)) return content;
      return { ...content, rest: bytes === 0 ? null : { bytes, sinceMs, endsInLine } };
    }
    case 'searched':
      return { ...content, seenBytes: observation.searchedTo, searchedTo: observation.searchedTo };
  }
}

function stored(state: LogState, position: SourcePosition): Step {
  const { content } = state;
  assert('position' in content, 'only content that is read is stored');
  // A position that knows the length of the compressed file stands at the end of its content.
  if (content.kind === 'packed' && position.packedBytes !== null)
    return leave({ ...state, hasStored: true }, { kind: 'done' });
  return { state: { ...state, hasStored: true, content: { ...content, position } } };
}

/** Content that was read until now is not read any more. */
function leave(state: LogState, content: UnreadContent): Step {
  const left = { ...state, content };
  return state.content.kind === 'packed' ? { state: left, closes: state.content.source } : { state: left };
}

/** Whether a log may be read or looked at now, as far as failures before say. */
export function isDue({ failure }: LogState, nowMs: number): boolean {
  if (failure === null) return true;
  // A clock that went back must not hold it for as long.
  return nowMs >= failure.retryAtMs || nowMs < failure.retryAtMs - retryLongestMs;
}

/** Bytes that were seen and are not stored; 0 for a compressed file, of which that is not known. */
export function lagBytes({ content }: LogState): number {
  return content.kind === 'follow' ? Math.max(0, content.seenBytes - content.position.offset) : 0;
}

/** Since when a log ends inside a record, under the name that it has now; null when it does not. */
export function restSinceMs({ content, movedMs, goneSinceMs }: LogState): number | null {
  if (content.kind !== 'follow' || content.rest === null) return null;
  return Math.max(content.rest.sinceMs, movedMs, goneSinceMs ?? 0);
}
