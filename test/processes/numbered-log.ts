import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fetchAlone, freePort, recordsOf, run, start, workFolder, type Running } from '../cli/process.js';

/** An agent whose records are numbers, so that lost or repeated records are noticed at once. */
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

/** Records belong to the 200 hours from here on, which are over: loads add to hours that have been read before. */
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

/** The lines of the records from `from` to `to - 1`, spread over the hours. */
export function numberLines(from: number, to: number, source: string): string {
  let text = '';
  for (let n = from; n < to; n++) {
    const timeMs = firstMs + ((n * 7919) % (hours * 60)) * (hourMs / 60);
    text += `{"time":${timeMs},"n":${n},"source":"${source}"}\n`;
  }
  return text;
}

/** Writes a file of these lines into the folder's `logs`, and returns its name there. */
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
  /** The answer to a query on the agent `numbers`. Fails unless it is a complete 200. */
  ask(query: string): Promise<Numbered[]>;
  /** The same with whole records of any agent. */
  records(agent: string, query: string): Promise<ReturnType<typeof recordsOf>>;
}

export async function serveNumbers(folder: string): Promise<Served> {
  const port = await freePort();
  const process = start(folder, ['serve', '--listen', `127.0.0.1:${port}`]);
  await process.shows('serving ');
  const records: Served['records'] = async (agent, query) => {
    const response = await fetchAlone(`http://127.0.0.1:${port}/api/query/${agent}?${query}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} for ${agent}?${query}: ${text}`);
    return recordsOf(text);
  };
  const ask = async (query: string): Promise<Numbered[]> =>
    (await records('numbers', query)).map(({ _cursor, n }) => ({ cursor: String(_cursor), n: Number(n) }));
  return { process, ask, records };
}

interface CollectedFile {
  readonly path: string;
  readonly role: string;
  readonly offset: number;
  readonly lagBytes: number;
}

/** The server closes a removed log after a minute without new lines. Only then is it decided what a compressed copy of it has. */
const readMs = 180_000;

/** Waits until the server has read every file of a folder to its end, and every file that is gone. */
export async function allRead(folder: string, agent = 'numbers', logs = 'logs'): Promise<void> {
  const isRead = ({ path, role, offset, lagBytes }: CollectedFile): boolean => {
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    return role === 'done' || (lagBytes === 0 && (role === 'follow' ? offset >= bytes : bytes === 0));
  };
  const areAllRead = async (): Promise<boolean> => {
    await delay(1000);
    const { stdout } = await run(folder, ['stats', agent, '--json']);
    const { files } = (JSON.parse(stdout) as { collecting: { files: CollectedFile[] } }).collecting;
    const names = readdirSync(join(folder, logs), { recursive: true, encoding: 'utf8' });
    const paths = names.map((name) => join(folder, logs, name)).filter((path) => statSync(path).isFile());
    return files.every(isRead) && paths.every((each) => files.some(({ path }) => path === each));
  };
  await until(areAllRead, `every file in ${logs} is read`, readMs);
}

/** Time limit of one answer on a busy machine; the query timeout itself is 10 s in one of the tests. */
const pageRecords = 20_000;

/** Every number of the store from `from` on, in ascending order. */
export async function allNumbers(served: Served, from = 0): Promise<number[]> {
  const numbers: number[] = [];
  for (let after = '0000000000000000'; ;) {
    const page = await served.ask(`n__gte=${from}&after=${after}&limit=${pageRecords}`);
    if (page.length === 0) return numbers.sort((a, b) => a - b);
    for (const { n } of page) numbers.push(n);
    after = page.at(-1)!.cursor;
  }
}

/** The numbers from `from` to `to - 1`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** Polls; fails if `what` has not happened after a time that only a hang can take. */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string,
  limitMs = 60_000,
): Promise<void> {
  const deadlineMs = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadlineMs) throw new Error(`this did not come about: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
