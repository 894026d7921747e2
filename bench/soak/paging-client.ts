import { Finding } from '../runner.js';
const beforeAll = '0000000000000000';
const pageRecords = 5000;
const pollMs = 300;
const walkPages = 10;

/** An error in the answers that a client got. */
export class PagingFault extends Finding {}

interface Page {
  readonly cursors: readonly string[];
  readonly numbers: readonly number[];
}

async function pageOf(url: string, query: string, encoding: string): Promise<Page> {
  const response = await fetch(`${url}?${query}`, { headers: { 'accept-encoding': encoding } });
  const text = await response.text();
  if (response.status !== 200) throw new PagingFault(`${query} is answered with ${response.status}: ${text}`);
  const cursors: string[] = [];
  const numbers: number[] = [];
  for (const [, cursor, n] of text.matchAll(/^\{"_cursor":"([0-9a-f]{16})".*?"n":(\d+)/gm)) {
    if (cursors.length > 0 && cursor! <= cursors.at(-1)!)
      throw new PagingFault(`${query}: ${cursor} is out of order`);
    cursors.push(cursor!);
    numbers.push(Number(n));
  }
  return { cursors, numbers };
}

/** What a client has received so far. */
export interface PagingCounts {
  pages: number;
  records: number;
}

/** A client that continuously pages through a tenth of the records. */
export abstract class PagingClient {
  readonly counts: PagingCounts = { pages: 0, records: 0 };
  protected stopping = false;
  /** The content coding that it accepts. */
  protected readonly encoding: string = 'identity';

  constructor(
    protected readonly url: string,
    protected readonly shard: number,
  ) {}

  /** Pages until it is stopped. Rejects with `PagingFault` for a record that is repeated or missing. */
  async run(): Promise<void> {
    while (!this.stopping) {
      await this.turn();
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Ends `run` after the current page. */
  stop(): void {
    this.stopping = true;
  }

  /** Reads what there is for now, page by page. */
  protected abstract turn(): Promise<void>;

  /** Requests a page of the client's shard. */
  protected async page(query: string): Promise<Page> {
    const page = await pageOf(
      this.url,
      `shard__eq=${this.shard}&limit=${pageRecords}${query}`,
      this.encoding,
    );
    this.counts.pages++;
    this.counts.records += page.cursors.length;
    return page;
  }
}

/** Follows the log by `after=<last cursor>`. Each record must come once, with a higher cursor than all before. */
export class Follower extends PagingClient {
  /** The lowest number of its shard that it has not received. */
  next: number;
  private after = beforeAll;
  private readonly ahead = new Set<number>();

  constructor(url: string, shard: number) {
    super(url, shard);
    this.next = shard;
  }

  protected async turn(): Promise<void> {
    for (;;) {
      const { cursors, numbers } = await this.page(`&after=${this.after}`);
      if (cursors.length === 0) return;
      if (cursors[0]! <= this.after) throw new PagingFault(`${cursors[0]} comes after ${this.after}`);
      this.after = cursors.at(-1)!;
      for (const n of numbers) this.see(n);
    }
  }

  private see(n: number): void {
    if (n < this.next || this.ahead.has(n)) throw new PagingFault(`line ${n} is there twice`);
    this.ahead.add(n);
    while (this.ahead.delete(this.next)) this.next += 10;
  }
}

/** Walks back from the newest record and forward again, with gzip. Both ways must give the same records. */
export class Walker extends PagingClient {
  protected override readonly encoding = 'gzip';

  protected async turn(): Promise<void> {
    const back: string[] = [];
    for (let i = 0, before = ''; i < walkPages && !this.stopping; i++) {
      const { cursors } = await this.page(before);
      if (cursors.length === 0) break;
      back.unshift(...cursors);
      before = `&before=${cursors[0]!}`;
    }
    if (back.length < 2) return;
    const forth: string[] = [back[0]!];
    while (forth.at(-1)! < back.at(-1)!) {
      const { cursors } = await this.page(`&after=${forth.at(-1)!}`);
      if (cursors.length === 0) break;
      forth.push(...cursors);
    }
    // Retention may have removed the oldest records between the two ways, or during one of them, so these are not compared.
    const { cursors } = await pageOf(this.url, `limit=1&after=${beforeAll}`, this.encoding);
    const isThere = (cursor: string): boolean => cursors.length > 0 && cursor >= cursors[0]!;
    const backThere = back.filter(isThere);
    const met = forth.filter(isThere);
    const at = backThere.findIndex((cursor, i) => cursor !== met[i]);
    if (at >= 0)
      throw new PagingFault(`on the way back ${backThere[at]} was met, and ${met[at]} on the way forth`);
  }
}
