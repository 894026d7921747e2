import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** A comparison for collecting. `split` only finds the lines of a file; `script` is a simple program such as one could write in an hour. */
export interface ScriptTask {
  readonly kind: 'split' | 'script';
  /** Number of times that the file is read, besides a first one that is not counted. */
  readonly times: number;
  readonly path: string;
  /** File that the script writes to. */
  readonly target: string;
  /** The pattern of lines that are not JSON; null for JSON. */
  readonly regex: string | null;
}

/** The result. */
export interface ScriptFigures {
  readonly lines: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const pieceBytes = 4 * 1024 * 1024;

function split(content: Buffer): number {
  let lines = 0;
  for (let at = content.indexOf(10); at >= 0; at = content.indexOf(10, at + 1)) lines++;
  return lines;
}

/** Parses each line and writes the records as JSON Lines, synced to disk every 4 MiB. */
function script(content: Buffer, regex: RegExp | null, target: string): number {
  const handle = openSync(target, 'w');
  let lines = 0;
  for (let from = 0; from < content.length;) {
    const end = content.lastIndexOf(10, Math.min(content.length, from + pieceBytes) - 1) + 1;
    const records: string[] = [];
    for (const line of content.toString('utf8', from, end - 1).split('\n')) {
      records.push(JSON.stringify(regex === null ? JSON.parse(line) : regex.exec(line)?.groups));
      lines++;
    }
    writeSync(handle, `${records.join('\n')}\n`);
    fdatasyncSync(handle);
    from = end;
  }
  closeSync(handle);
  return lines;
}

function run({ kind, times, path, target, regex }: ScriptTask): ScriptFigures {
  // Go writes named groups as `(?P<name>`.
  const pattern = regex === null ? null : new RegExp(regex.replaceAll('(?P<', '(?<'));
  let lines = 0;
  let startMs = 0;
  let cpuBefore = process.cpuUsage();
  for (let i = 0; i <= times; i++) {
    if (i === 1) {
      lines = 0;
      startMs = performance.now();
      cpuBefore = process.cpuUsage();
    }
    const content = readFileSync(path);
    lines += kind === 'split' ? split(content) : script(content, pattern, target);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  return { lines, seconds: (performance.now() - startMs) / 1000, cpuSeconds: (user + system) / 1e6 };
}

process.stdout.write(JSON.stringify(run(JSON.parse(process.argv[2]!) as ScriptTask)));
