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
import type { SourcePosition } from './source-position.js';

/** One file of an agent: known by its device and number, under whatever name. */
export class FollowedFile implements HandleHolder {
  #state: LogState;
  #closing: Promise<void> = Promise.resolve();

  /** @param wasThere see `firstState` */
  constructor(
    readonly inode: string,
    sighting: Sighting,
    nowMs: number,
    wasThere: boolean,
  ) {
    this.#state = firstState(sighting, nowMs, wasThere);
  }

  /** What is known of it. */
  get state(): LogState {
    return this.#state;
  }

  /** Takes an observation in: `next` says what it means. */
  observe(observation: Observation): void {
    const { state, closes } = next(this.#state, observation);
    this.#state = state;
    // What is only read has nothing to lose when it is closed.
    if (closes !== undefined) this.#closing = closes.close().catch(() => {});
  }

  /** Resolves when the compressed file is closed that was not needed any more. */
  closed(): Promise<void> {
    return this.#closing;
  }

  get path(): string {
    return this.#state.path;
  }

  get name(): LogName {
    return this.#state.name;
  }

  get gone(): boolean {
    return this.#state.goneSinceMs !== null;
  }

  get kind(): LogContent['kind'] {
    return this.#state.content.kind;
  }

  /** The name is that of a generation which rotation has put aside. */
  get rotated(): boolean {
    return this.name.base !== this.name.name;
  }

  /** Its content, while it is followed. */
  get followed(): FollowedContent | null {
    const { content } = this.#state;
    return content.kind === 'follow' ? content : null;
  }

  /** Its content, while it is followed or unpacked. */
  get beingRead(): FollowedContent | PackedContent | null {
    const { content } = this.#state;
    return 'position' in content ? content : null;
  }

  /** How far it is stored, while it is read. */
  get position(): SourcePosition | null {
    return this.beingRead?.position ?? null;
  }
}
