import { LineFrame } from './line-frame.js';

/**
 * The frames that all collectors of a process share. Their number is bounded, which bounds the memory; a collector waits
 * until one is free.
 */
export class FramePool {
  private readonly spare: LineFrame[] = [];
  private readonly waiting: ((frame: LineFrame) => void)[] = [];
  private made = 0;

  /** @param isLent whether frames use memory that is shared with worker threads */
  constructor(
    private readonly framesMax: number,
    private readonly isLent: boolean,
  ) {}

  /** Calls `use` with a frame, and returns the frame to the pool afterwards. */
  async use<T>(use: (frame: LineFrame) => Promise<T>): Promise<T> {
    const frame = await this.take();
    try {
      return await use(frame);
    } finally {
      this.giveBack(frame);
    }
  }

  private take(): Promise<LineFrame> {
    const spare = this.spare.pop();
    if (spare !== undefined) return Promise.resolve(spare);
    if (this.made < this.framesMax) {
      this.made++;
      return Promise.resolve(new LineFrame(this.isLent));
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private giveBack(frame: LineFrame): void {
    const next = this.waiting.shift();
    if (next === undefined) this.spare.push(frame);
    else next(frame);
  }

  /** Frees the memory of the frames that are not in use. */
  close(): void {
    for (const frame of this.spare.splice(0)) {
      frame.close();
      this.made--;
    }
  }
}
