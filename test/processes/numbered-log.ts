import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchAlone, freePort, recordsOf, start, workFolder, type Running } from '../cli/process.js';

/** An agent whose records are numbers: what is lost or repeated shows at once. */
const agentFile = `fields:
  - name: time
    type: time
  - name: n
    type: int
  - name: source
file:
  path: 'logs/.*'
  format: json
`;

/** Records lie in the 200 hours from here on, which are over: loads add to hours that others have read already. */
const firstMs = Date.UTC(2026, 0, 1);
const hourMs = 3_600_000;
const hours = 200;

/** A folder of its own with the agent `numbers`. */
export function numbersFolder(): string {
  const folder = workFolder();
  mkdirSync(join(folder, 'logs'));
  writeFileSync(join(folder, 'agents/numbers.yaml'), agentFile);
  return folder;
}

/** The lines of the records `from` … `to - 1`, strewn over the hours. */
export function numberLines(from: number, to: number, source: string): string {
  let text = '';
  for (let n = from; n < to; n++) {
    const timeMs = firstMs + ((n * 7919) % (hours * 60)) * (hourMs / 60);
    text += `{"time":${timeMs},"n":${n},"source":"${source}"}\n`;
  }
  return text;
}

/** Writes such a file into the folder's `logs`, and gives its name there. */
export function writeNumbers(folder: string, name: string, from: number, to: number): string {
  const path = `logs/${name}`;
  writeFileSync(join(folder, path), numberLines(from, to, name));
  return path;
}

export interface Numbered {
  readonly cursor: string;
  readonly n: number;
}

/** A server in a process of its own. */
export interface Served {
  readonly process: Running;
  /** The answer to a query on the agent `numbers`. Fails unless it is a whole 200. */
  ask(query: string): Promise<Numbered[]>;
}

export async function serveNumbers(folder: string): Promise<Served> {
  const port = await freePort();
  const process = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await process.shows('serving ');
  const ask = async (query: string): Promise<Numbered[]> => {
    const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/numbers?${query}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} for ${query}: ${text}`);
    return recordsOf(text).map((record) => ({ cursor: String(record._cursor), n: Number(record.n) }));
  };
  return { process, ask };
}

/** What one answer may take on a busy machine, far from the longest time of a query, which is 10 s in one of the tests. */
const pageRecords = 20_000;

/** Every number of the store from `from` on, ascending. */
export async function allNumbers(served: Served, from = 0): Promise<number[]> {
  const numbers: number[] = [];
  for (let after = '0000000000000000'; ;) {
    const page = await served.ask(`n__gte=${from}&after=${after}&limit=${pageRecords}`);
    if (page.length === 0) return numbers.sort((a, b) => a - b);
    for (const { n } of page) numbers.push(n);
    after = page.at(-1)!.cursor;
  }
}

/** `from` … `to - 1`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** Polls; fails when `what` has not come about after a time that only a hang can take. */
export async function until(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const deadlineMs = Date.now() + 60_000;
  while (!(await condition())) {
    if (Date.now() > deadlineMs) throw new Error(`this did not come about: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
