/** Wakes one sleeper; a call while nobody sleeps ends the next sleep at once. */
export class WakeUp {
  private called = false;
  private wake: (() => void) | null = null;

  /** Wakes the sleeper. */
  call(): void {
    this.called = true;
    this.wake?.();
  }

  /** Sleeps until `call`, at most `ms` milliseconds. Returns whether it was called. */
  async sleep(ms: number): Promise<boolean> {
    if (!this.called) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.wake = null;
    }
    const { called } = this;
    this.called = false;
    return called;
  }
}
