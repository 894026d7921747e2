import {
  firstState,
  next,
  type FollowedContent,
  type LogContent,
  type LogState,
  type Observation,
  type PackedContent,
  type Sighting,
} from './log-state.js';
import type { LogName } from './log-names.js';
import type { HandleHolder } from './open-files.js';
import type { SourcePosition } from '../../sources/source-position.js';

/** One file of an agent. It is identified by device and inode number, whatever its name. */
export class FollowedFile implements HandleHolder {
  #state: LogState;
  #closing: Promise<void> = Promise.resolve();

  /** @param wasThere see `firstState` */
  constructor(
    readonly inode: string,
    sighting: Sighting,
    nowMs: number,
    wasThere: boolean,
    /** The file whose name it has taken, if that file had the name until it appeared. */
    readonly replaces: string | null,
  ) {
    this.#state = firstState(sighting, nowMs, wasThere);
  }

  /** The current state. */
  get state(): LogState {
    return this.#state;
  }

  /** Updates the state by an observation, as `next` defines. */
  observe(observation: Observation): void {
    const { state, closes } = next(this.#state, observation);
    this.#state = state;
    // The file is only read, so a failure to close loses nothing.
    if (closes !== undefined) this.#closing = closes.close().catch(() => {});
  }

  /** Resolves once the compressed file that was no longer needed is closed. */
  closed(): Promise<void> {
    return this.#closing;
  }

  get path(): string {
    return this.#state.path;
  }

  /** The path by which it is opened. */
  get place(): string {
    return this.#state.target ?? this.#state.path;
  }

  get name(): LogName {
    return this.#state.name;
  }

  /** Whether no name leads to the file any more. */
  get isGone(): boolean {
    return this.#state.goneSinceMs !== null;
  }

  get kind(): LogContent['kind'] {
    return this.#state.content.kind;
  }

  /** Whether the name is that of a rotated generation. */
  get rotated(): boolean {
    return this.name.base !== this.name.name;
  }

  /** The content while it is followed; else null. */
  get followed(): FollowedContent | null {
    const { content } = this.#state;
    return content.kind === 'follow' ? content : null;
  }

  /** The content while it is followed or decompressed; else null. */
  get beingRead(): FollowedContent | PackedContent | null {
    const { content } = this.#state;
    return 'position' in content ? content : null;
  }

  /** The stored position while the file is read; else null. */
  get position(): SourcePosition | null {
    return this.beingRead?.position ?? null;
  }
}
