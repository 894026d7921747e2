import { expect } from 'vitest';
import type { Random } from '../../bench/random.js';
import type { ShippedLog } from './shipped-log.js';

/** Filters that match all records, and no filter: queries with filters take another path. */
const filters = ['', '&n__gte=0', '&text__like=ünï', '&n__lt=2000000000&text__ne=x'];

/** A client that repeatedly pages through all records by cursor, and compares each page with the expected one. */
export class FarWalk {
  /** Complete pages, and requests that failed. */
  pages = 0;
  refused = 0;
  /** How often the client reached the end. */
  ends = 0;
  #next = 0;
  #cursor = '0000000000000000';
  #isOver = false;
  #walking: Promise<void> = Promise.resolve();

  constructor(
    private readonly log: ShippedLog,
    private readonly random: Random,
  ) {}

  begin(): void {
    this.#isOver = false;
    this.#walking = (async () => {
      while (!this.#isOver) await this.#step(1 + this.random.below(400));
    })();
    // `end` throws a failure.
    this.#walking.catch(() => undefined);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#walking;
  }

  /** Pages once through all records in long pages, repeating requests until they are answered. */
  async whole(): Promise<void> {
    this.#restart();
    const { ends } = this;
    await expect.poll(() => this.#step(20_000).then(() => this.ends), { interval: 20 }).toBeGreaterThan(ends);
  }

  #restart(): void {
    this.#next = 0;
    this.#cursor = '0000000000000000';
  }

  async #step(limit: number): Promise<void> {
    const { log, random } = this;
    const isBack = this.#next > 0 && random.below(4) === 0;
    const asked = `${isBack ? 'before' : 'after'}=${this.#cursor}&limit=${limit}${random.pick(filters)}`;
    const answer = await log.answer(asked);
    if (answer === null) {
      this.refused++;
      // Slows the client down, so that it does not keep the machine busy.
      await new Promise((resolve) => setTimeout(resolve, 20));
      return;
    }
    // The record at the cursor is the one before `#next`.
    const end = isBack ? this.#next - 1 : Math.min(log.records, this.#next + limit);
    const first = isBack ? Math.max(0, end - limit) : this.#next;
    const expected = Array.from({ length: end - first }, (_, i) => log.numberAt(first + i));
    expect(answer.map(({ n }) => n).join(' '), `${asked} at record ${this.#next} of ${log.records}`).toBe(
      expected.join(' '),
    );
    this.pages++;
    if (isBack) return;
    this.#next = end;
    this.#cursor = answer.at(-1)?._cursor ?? this.#cursor;
    if (end < log.records) return;
    this.ends++;
    this.#restart();
  }
}
