import { expect } from 'vitest';
import { fetchAlone, recordsOf } from '../cli/process.js';

const beforeAll = '0000000000000000';
const failuresMax = 100;

interface Seen {
  readonly cursor: string;
  readonly n: number;
}

/** A client that follows an agent's records with `after=<last cursor>`, and keeps all that it has seen. */
export class FollowingClient {
  /** By position. */
  readonly cursors: string[] = [];
  readonly numbers: number[] = [];
  private after = beforeAll;
  /** Statuses of failed answers that are no fault, because the server is ending. */
  readonly excused = new Set([503]);

  /** Lines 0 to `caughtUp - 1` have been seen. */
  caughtUp = 0;
  private readonly ahead = new Set<number>();

  /** Requests new records until there are no more. Records of a broken answer do not count. */
  async poll(url: string): Promise<void> {
    for (;;) {
      const page = await this.page(url, this.after, 10_000);
      if (page === null || page.length === 0) return;
      for (const { cursor, n } of page) this.see(cursor, n);
    }
  }

  /** A page, or null if there was no complete answer: no server, an excused status, or a kill during the answer. */
  private async page(url: string, after: string, limit: number): Promise<Seen[] | null> {
    const whole = await fetchAlone(`${url}?after=${after}&limit=${limit}`)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => null);
    if (whole === null || this.excused.has(whole.status)) return null;
    expect(`${whole.status} ${whole.status === 200 ? '' : whole.text}`).toBe('200 ');
    return recordsOf(whole.text).map(({ _cursor, n }) => ({ cursor: String(_cursor), n: Number(n) }));
  }

  /** Every record of the agent, by position. Fails unless all of them are returned. */
  async everything(url: string): Promise<Seen[]> {
    const all: Seen[] = [];
    let failures = 0;
    for (let after = beforeAll; ;) {
      const page = await this.page(url, after, 100_000);
      if (page === null) {
        if (++failures > failuresMax) throw new Error(`${url} does not answer`);
        continue;
      }
      if (page.length === 0) return all;
      all.push(...page);
      after = page.at(-1)!.cursor;
    }
  }

  private see(cursor: string, n: number): void {
    expect(cursor > this.after, `${cursor} comes after ${this.after}`).toBe(true);
    this.after = cursor;
    this.cursors.push(cursor);
    this.numbers.push(n);
    this.ahead.add(n);
    while (this.ahead.delete(this.caughtUp)) this.caughtUp++;
  }
}
