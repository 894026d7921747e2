import { setTimeout as delay } from 'node:timers/promises';
import { Random } from '../random.js';
import { connectedLine } from './connected-line.js';
import { StreamClient } from './stream-client.js';

/** The task of a process with clients, which is its only argument. */
export interface ClientsTask {
  readonly url: string;
  /** Number of clients with a filter, which one record in `step` matches, and of clients without one. */
  readonly some: number;
  readonly step: number;
  readonly all: number;
  /** Number of records that are written in total. */
  readonly records: number;
  /** Milliseconds without broken connections; from then on a tenth of them is broken at this interval. */
  readonly calmMs: number;
  readonly breakMs: number;
  /** Maximum milliseconds to wait for the last record. */
  readonly timeoutMs: number;
  /** Number of restarts of the server. Before each of them, all clients must have connected, which a line of output reports. */
  readonly restarts: number;
}

/** Statistics of lags, with a resolution of 1 ms. */
export interface LagFigures {
  readonly records: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The result, summed over all clients. */
export interface ClientsFigures {
  readonly lost: number;
  readonly repeated: number;
  /** Clients that did not get the last record. */
  readonly unfinished: number;
  readonly connections: number;
  readonly behind: number;
  readonly lagging: number;
  /** Lags before, and after, connections began to break and the server was restarted. */
  readonly calm: LagFigures;
  readonly later: LagFigures;
}

/** A histogram of lags with classes of 1 ms. */
class Lags {
  readonly #counts = new Uint32Array(120_000);
  #count = 0;
  #max = 0;

  add(ms: number): void {
    const lag = Math.max(0, ms);
    this.#counts[Math.min(this.#counts.length - 1, Math.floor(lag))]!++;
    this.#count++;
    this.#max = Math.max(this.#max, lag);
  }

  figures(): LagFigures {
    const share = (of: number): number => {
      let left = of * this.#count;
      let ms = 0;
      while (ms < this.#counts.length - 1 && left > this.#counts[ms]!) left -= this.#counts[ms++]!;
      return ms;
    };
    return { records: this.#count, medianMs: share(0.5), p99Ms: share(0.99), maxMs: this.#max };
  }
}

async function follow(task: ClientsTask): Promise<ClientsFigures> {
  const { url, some, step, all, records, calmMs, breakMs, timeoutMs, restarts } = task;
  const startMs = Date.now();
  const calm = new Lags();
  const later = new Lags();
  const onRecord = (sentMs: number, nowMs: number): void => {
    // Records that were written before the clients existed are not counted.
    if (sentMs < startMs) return;
    (nowMs < startMs + calmMs ? calm : later).add(nowMs - sentMs);
  };
  const clients = [
    ...Array.from({ length: some }, () => new StreamClient(new URL(`${url}?matches__eq=1`), step, onRecord)),
    ...Array.from({ length: all }, () => new StreamClient(new URL(url), 1, onRecord)),
  ];
  const random = new Random(startMs);
  const isDone = ({ next }: StreamClient): boolean => next >= records;
  let brokenMs = startMs + calmMs;
  let connected = 0;
  while (Date.now() < startMs + timeoutMs) {
    if (clients.every(({ connections }) => connections > connected))
      process.stdout.write(connectedLine(++connected));
    if (connected > restarts && clients.every(isDone)) break;
    await delay(50);
    if (Date.now() < brokenMs + breakMs) continue;
    brokenMs = Date.now();
    for (const client of clients) if (random.below(10) === 0) client.breakOff();
  }
  for (const client of clients) client.end();
  const sum = (of: (client: StreamClient) => number): number =>
    clients.reduce((total, client) => total + of(client), 0);
  return {
    lost: sum(({ lost }) => lost),
    repeated: sum(({ repeated }) => repeated),
    unfinished: clients.filter((client) => !isDone(client)).length,
    connections: sum(({ connections }) => connections),
    behind: sum(({ named }) => named.get('behind') ?? 0),
    lagging: sum(({ named }) => named.get('lagging') ?? 0),
    calm: calm.figures(),
    later: later.figures(),
  };
}

const figures = await follow(JSON.parse(process.argv[2]!) as ClientsTask);
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
