/** Waits until the task may take its next step. */
export type Turn = () => Promise<void>;

/** Runs tasks to their ends, one step at a time: a step lasts from one turn to the next. Returns the order of the steps. */
export type RunInTurns = (
  tasks: Readonly<Record<string, (turn: Turn) => Promise<void>>>,
) => Promise<string[]>;

/** The place of the task that took a step, among the given number of possible tasks. */
interface Choice {
  readonly taken: number;
  readonly among: number;
}

/** Calls `attempt`, which runs tasks in turns, once for every order in which their steps can follow one another. */
export async function everyOrder(attempt: (run: RunInTurns) => Promise<void>): Promise<void> {
  let wanted: readonly number[] | null = [];
  while (wanted !== null) {
    const steps: Steps = new Steps(wanted);
    await attempt((tasks) => steps.run(tasks));
    wanted = steps.nextOrder();
  }
}

/** One run of tasks that begins with the given order of steps. */
class Steps {
  private readonly choices: Choice[] = [];
  private readonly waiting = new Map<string, () => void>();
  private runningCount = 0;
  private onWaiting: () => void = () => {};

  constructor(private readonly wanted: readonly number[]) {}

  async run(tasks: Parameters<RunInTurns>[0]): Promise<string[]> {
    const order: string[] = [];
    const names = Object.keys(tasks);
    this.runningCount = names.length;
    const ends = Promise.allSettled(names.map((name) => this.begin(name, tasks[name]!)));
    for (;;) {
      while (this.runningCount > 0) await new Promise<void>((resolve) => void (this.onWaiting = resolve));
      const ready = names.filter((name) => this.waiting.has(name));
      if (ready.length === 0) break;
      const taken = this.wanted[this.choices.length] ?? 0;
      this.choices.push({ taken, among: ready.length });
      const name = ready[taken]!;
      order.push(name);
      this.release(name);
    }
    for (const end of await ends) if (end.status === 'rejected') throw end.reason;
    return order;
  }

  /** The order to try next; null after the last. */
  nextOrder(): readonly number[] | null {
    const last = this.choices.findLastIndex(({ taken, among }) => taken + 1 < among);
    if (last < 0) return null;
    return this.choices.slice(0, last + 1).map(({ taken }, i) => (i === last ? taken + 1 : taken));
  }

  private async begin(name: string, task: (turn: Turn) => Promise<void>): Promise<void> {
    const turn = (): Promise<void> =>
      new Promise((resolve) => {
        this.waiting.set(name, resolve);
        this.pause();
      });
    await turn();
    try {
      await task(turn);
    } finally {
      this.pause();
    }
  }

  private pause(): void {
    this.runningCount--;
    this.onWaiting();
  }

  private release(name: string): void {
    const go = this.waiting.get(name)!;
    this.waiting.delete(name);
    this.runningCount++;
    go();
  }
}
