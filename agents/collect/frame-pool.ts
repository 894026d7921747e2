import { Semaphore } from '../../engine/index.js';
import { LineFrame } from './line-frame.js';

/**
 * The frames that all collectors of a process share. Their number is bounded, which bounds the memory; a collector waits
 * until one is free.
 */
export class FramePool {
  private readonly spare: LineFrame[] = [];
  private readonly turns: Semaphore;

  /** @param isLent whether frames use memory that is shared with worker threads */
  constructor(
    framesMax: number,
    private readonly isLent: boolean,
  ) {
    this.turns = new Semaphore(framesMax);
  }

  /** Calls `use` with a frame, and returns the frame to the pool afterwards. */
  use<T>(use: (frame: LineFrame) => Promise<T>): Promise<T> {
    return this.turns.run(async () => {
      const frame = this.spare.pop() ?? new LineFrame(this.isLent);
      try {
        return await use(frame);
      } finally {
        this.spare.push(frame);
      }
    });
  }

  /** Frees the memory of the frames that are not in use. */
  close(): void {
    for (const frame of this.spare.splice(0)) frame.close();
  }
}
