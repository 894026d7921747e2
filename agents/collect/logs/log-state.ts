import { assert, assertNever, type Checkpoint } from '../../../engine/index.js';
import type { CompressedSource } from './compressed-source.js';
import type { CutBack } from './cut-back.js';
import type { FileStatus } from './log-files.js';
import type { LogName } from './log-names.js';
import type { SourcePosition } from '../../sources/source-position.js';

/** Path, name and status of a log when it was last seen. */
export interface Sighting {
  readonly path: string;
  readonly name: LogName;
  readonly status: FileStatus;
  /** Where the file lies, if the path only leads to it: a symbolic link, or a name that stands for a file elsewhere. Else null. */
  readonly target: string | null;
}

/** The identity of a log's content, and how far it is stored. */
export type LogContent = UnreadContent | FollowedContent | PackedContent;

/**
 * Content that is not read: `new` has not been identified yet, `waiting` can't be identified yet, `done` is stored
 * completely, `history` is older than the agent.
 */
export interface UnreadContent {
  readonly kind: 'new' | 'waiting' | 'done' | 'history';
}

/** A plain file that is read as it grows. */
export interface FollowedContent {
  readonly kind: 'follow';
  /** Position up to which it is stored. */
  readonly position: SourcePosition;
  /** The `asOf` of the checkpoints that gave the position. */
  readonly asOf: number;
  /** The first bytes of the content that were seen, stored or not; at most `headBytesMax`. */
  readonly begun: Uint8Array;
  /** The greatest length that was ever seen. */
  readonly seenBytes: number;
  /** Length of the file when its content was last verified. Bytes beyond it may belong to other content. */
  readonly provenBytes: number;
  /** The bytes after the last complete record; null where there are none. */
  readonly rest: Rest | null;
  /** Offset up to which the end of an overlong line has been searched. */
  readonly searchedTo: number;
}

/** A compressed file, which is read to its end once. */
export interface PackedContent {
  readonly kind: 'packed';
  readonly position: SourcePosition;
  readonly asOf: number;
  /** The first bytes of the content; at most `headBytesMax`. */
  readonly begun: Uint8Array;
  readonly source: CompressedSource;
}

/** Bytes after the last complete record. */
export interface Rest {
  readonly bytes: number;
  /** Since when there have been exactly so many. */
  readonly sinceMs: number;
  /** Whether they end inside a line. */
  readonly endsInLine: boolean;
}

/** Why a log could not be read, and when the next attempt is due. */
export interface Failure {
  readonly message: string;
  readonly retryAtMs: number;
  readonly retryMs: number;
}

/** All that is known about one file of an agent. */
export interface LogState extends Sighting {
  /** Since when no name leads to the file; null while one does. */
  readonly goneSinceMs: number | null;
  /** When its name last changed. */
  readonly movedMs: number;
  /** Since when its size and modification time have not changed. */
  readonly unchangedSinceMs: number;
  /** When lines of it were last read. */
  readonly grownMs: number;
  /** Whether there may be something to identify or to read. */
  readonly mayHaveMore: boolean;
  /** Its length when the agent was followed for the first time; 0 where the file did not exist then, or its content was truncated since. */
  readonly bytesWhenFound: number;
  /** Whether this process has stored lines of it. */
  readonly hasStored: boolean;
  /** Null while the file can be read. */
  readonly failure: Failure | null;
  readonly content: LogContent;
}

/** Result of identifying a file. */
export type Identity =
  | {
      readonly kind: 'follow';
      readonly position: SourcePosition;
      /** The checkpoint by which it was recognised; null for a new file. */
      readonly known: Checkpoint | null;
      /** First bytes of the content. */
      readonly head: Uint8Array;
      /** Set where the file has lost its end, of which some had been stored. */
      readonly cutBack?: CutBack;
      /** Whether it begins before the last line that was stored under its name, but does not have that line. */
      readonly isRewritten?: boolean;
    }
  | { readonly kind: 'packed'; readonly source: CompressedSource; readonly head: Uint8Array }
  | { readonly kind: 'done' | 'history' | 'waiting' };

/** An event in the life of a log, or a fact found out about it. */
export type Observation =
  /** A name leads to the file. */
  | ({ readonly kind: 'seen'; readonly nowMs: number } & Sighting)
  /** The file was opened, and its status read. */
  | { readonly kind: 'measured'; readonly status: FileStatus }
  /** The whole folder was surveyed, and the file may still be there. */
  | { readonly kind: 'surveyed' }
  /** The whole folder was surveyed, and no name leads to the file. */
  | { readonly kind: 'missed'; readonly nowMs: number }
  | { readonly kind: 'identified'; readonly identity: Identity; readonly asOf: number }
  /**
   * The file was read up to `reachedBytes`, which with `isEnd` was its end. `begun` holds its first bytes where these were
   * read, else null.
   */
  | {
      readonly kind: 'read';
      readonly reachedBytes: number;
      readonly isEnd: boolean;
      readonly begun: Uint8Array | null;
    }
  /** Complete records were gathered for a commit. */
  | { readonly kind: 'gathered' }
  /** The end of the file was reached; `restBytes` bytes follow the last complete record. */
  | {
      readonly kind: 'ended';
      readonly restBytes: number;
      readonly endsInLine: boolean;
      readonly nowMs: number;
    }
  /** The end of an overlong line was not found before `searchedTo`. */
  | { readonly kind: 'searched'; readonly searchedTo: number }
  /** The file's turn in a round is over. */
  | {
      readonly kind: 'turned';
      readonly mayHaveMore: boolean;
      readonly hasGrown: boolean;
      readonly nowMs: number;
    }
  /** A compressed file turned out to be empty. */
  | { readonly kind: 'empty' }
  /** The file is durably stored up to a position. */
  | { readonly kind: 'stored'; readonly position: SourcePosition }
  /** Something was written to the file. */
  | { readonly kind: 'written' }
  /** The content that was read is not there any more. */
  | { readonly kind: 'replaced' }
  /** Another file has taken its name and its content, and continues what is stored of it. */
  | { readonly kind: 'continued' }
  /** It is unknown up to where the file is stored: it has to be identified again. */
  | { readonly kind: 'doubted' }
  | { readonly kind: 'failed'; readonly message: string; readonly nowMs: number }
  | { readonly kind: 'succeeded' };

/** Result of an observation. */
export interface Step {
  readonly state: LogState;
  /** A compressed file that is no longer read; the caller closes it. */
  readonly closes?: CompressedSource;
}

/** Delay before a failed file is tried again; it doubles with each failure, up to the longest. */
const retryFirstMs = 1000;
const retryLongestMs = 60_000;

/** State of a file that is seen for the first time. `wasThere` says that it existed when the agent was first followed. */
export function firstState(sighting: Sighting, nowMs: number, wasThere: boolean): LogState {
  const { path, name, status, target } = sighting;
  return {
    path,
    name,
    status,
    target,
    goneSinceMs: null,
    movedMs: 0,
    unchangedSinceMs: nowMs,
    grownMs: nowMs,
    mayHaveMore: true,
    bytesWhenFound: wasThere ? status.sizeBytes : 0,
    hasStored: false,
    failure: null,
    content: { kind: 'new' },
  };
}

/** Returns the state of a log after an observation. Does not change `state`. */
export function next(state: LogState, observation: Observation): Step {
  const { content } = state;
  switch (observation.kind) {
    case 'seen':
      return { state: seen(state, observation, observation.nowMs) };
    case 'measured':
      return { state: { ...state, status: observation.status } };
    case 'surveyed':
      // One that is empty has to grow first.
      return content.kind === 'waiting' && state.status.sizeBytes > 0
        ? { state: { ...state, mayHaveMore: true } }
        : { state };
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
      return leave({ ...state, mayHaveMore: true, hasStored: false, bytesWhenFound: 0 }, { kind: 'new' });
    case 'continued':
      // Its last line may be complete in the other file. Else its program may still write to it.
      if (content.kind !== 'follow' || content.rest !== null) return leave(state, { kind: 'done' });
      return { state: { ...state, content: { ...content, position: { ...content.position, key: null } } } };
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

function seen(state: LogState, { path, name, status, target }: Sighting, nowMs: number): LogState {
  const { sizeBytes, modifiedMs } = state.status;
  const hasChanged = status.sizeBytes !== sizeBytes || status.modifiedMs !== modifiedMs;
  const hasReturned = state.goneSinceMs !== null;
  const hasMoved = state.path !== path || state.target !== target;
  const content = contentWhenSeen(state.content, status.sizeBytes, hasChanged || hasReturned);
  // Nothing has changed, as with most logs of a large folder in each survey: allocate no new state.
  if (!hasChanged && !hasReturned && !hasMoved) return withContent(state, content);
  return {
    ...state,
    path,
    name,
    status,
    target,
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
  if (content.kind === 'follow') {
    // What was searched may be other content by now.
    if (sizeBytes < content.searchedTo) return { ...content, searchedTo: 0 };
    return sizeBytes <= content.seenBytes ? content : { ...content, seenBytes: sizeBytes };
  }
  // A file without anything to read may have other content by now.
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
      return {
        kind: 'packed',
        position: identity.source.position,
        asOf,
        begun: identity.head,
        source: identity.source,
      };
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
      return { ...content, seenBytes: provenBytes, provenBytes, begun: begun ?? content.begun };
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
    case 'searched': {
      const { searchedTo } = observation;
      return { ...content, seenBytes: Math.max(content.seenBytes, searchedTo), searchedTo };
    }
  }
}

function stored(state: LogState, position: SourcePosition): Step {
  const { content } = state;
  assert('position' in content, 'only content that is read is stored');
  // A position with the size of the compressed file is at the end of its content.
  if (content.kind === 'packed' && position.packedBytes !== null)
    return leave({ ...state, hasStored: true }, { kind: 'done' });
  return { state: { ...state, hasStored: true, content: { ...content, position } } };
}

/** Replaces content that was read by content that is not. */
function leave(state: LogState, content: UnreadContent): Step {
  const left = { ...state, content };
  return state.content.kind === 'packed' ? { state: left, closes: state.content.source } : { state: left };
}

/** Whether a log may be read, considering the retry delay after failures. */
export function isDue({ failure }: LogState, nowMs: number): boolean {
  if (failure === null) return true;
  // A clock that went back must not prolong the delay.
  return nowMs >= failure.retryAtMs || nowMs < failure.retryAtMs - retryLongestMs;
}

/** Bytes that were seen but are not stored; 0 for a compressed file, whose content length is unknown. */
export function lagBytes({ content }: LogState): number {
  return content.kind === 'follow' ? Math.max(0, content.seenBytes - content.position.offset) : 0;
}

/** Since when a log ends inside a record under its current name; null where it does not. */
export function restSinceMs({ content, movedMs, goneSinceMs }: LogState): number | null {
  if (content.kind !== 'follow' || content.rest === null) return null;
  return Math.max(content.rest.sinceMs, movedMs, goneSinceMs ?? 0);
}
