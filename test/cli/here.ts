import type { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { runCommandLine } from '../../server/cli/program.js';
import type { Finished } from './process.js';

/** Emitters that the program adds listeners to, for the life of its process. */
const emitters: readonly EventEmitter[] = [process, process.stdout, process.stderr];

/** Removes the listeners that were added since, so that many runs leave none behind. */
function keepListeners(): () => void {
  const before = emitters.map((emitter) =>
    ['exit', 'error'].map((name) => new Set(emitter.rawListeners(name))),
  );
  return () =>
    emitters.forEach((emitter, i) =>
      ['exit', 'error'].forEach((name, k) => {
        for (const listener of emitter.rawListeners(name))
          if (!before[i]![k]!.has(listener)) emitter.off(name, listener as () => void);
      }),
    );
}

/** Collects what is written to a stream of this process, in place of writing it. */
function capture(stream: NodeJS.WriteStream): { text: () => string; release: () => void } {
  const pieces: Buffer[] = [];
  const { write } = stream;
  stream.write = ((piece: string | Uint8Array, ...rest: unknown[]) => {
    pieces.push(Buffer.from(piece as string));
    const done = rest.at(-1);
    if (typeof done === 'function') setImmediate(done as () => void);
    return true;
  }) as typeof write;
  return { text: () => Buffer.concat(pieces).toString('utf8'), release: () => void (stream.write = write) };
}

/** Gives the program `input` to read, and returns what takes it away. */
function setStdin(input: string | Buffer): () => void {
  const before = Object.getOwnPropertyDescriptor(process, 'stdin')!;
  const stdin = Readable.from(input.length === 0 ? [] : [Buffer.from(input as string)], {
    objectMode: false,
  });
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true, enumerable: true });
  return () => void Object.defineProperty(process, 'stdin', before);
}

function restoreVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

async function runNow(
  folder: string,
  args: readonly string[],
  input: string | Buffer,
  environment: Readonly<Record<string, string>>,
): Promise<Finished> {
  const before = { cwd: process.cwd(), env: { ...process.env }, exitCode: process.exitCode };
  const restoreListeners = keepListeners();
  const restoreStdin = setStdin(input);
  const stdout = capture(process.stdout);
  const stderr = capture(process.stderr);
  try {
    process.chdir(folder);
    Object.assign(process.env, environment);
    process.exitCode = undefined;
    const code = await runCommandLine(args);
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    stdout.release();
    stderr.release();
    restoreStdin();
    restoreListeners();
    process.exitCode = before.exitCode;
    for (const name of Object.keys(environment)) restoreVariable(name, before.env[name]);
    process.chdir(before.cwd);
  }
}

/** Runs wait for each other, because all have the streams and the working directory of this process. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the command line in this process, as `run` of `process.ts` does in one of its own, which takes ten times as long. For tests of what a
 * command prints, stores or refuses. Tests of processes (signals, pipes, locks, a server) need `process.ts`.
 */
export function run(
  folder: string,
  args: readonly string[],
  input: string | Buffer = '',
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const finished = last.then(() => runNow(folder, args, input, environment));
  last = finished.catch(() => undefined);
  return finished;
}
