import { existsSync, readFileSync } from 'node:fs';
import { AnswerReader, type AnswerDigest } from './answer-digest.js';
import type { Question } from './question.js';
import { answerColumns } from './record-set.js';
import { makeSide } from './sides/make-side.js';
import type { LoadFigures, Side, SideOptions, SideReplies, SideRequest } from './side.js';

/**
 * Runs a side in a process of its own, which answers the requests of the benchmark (`side-client.ts`) one after the other. So sides do not
 * share memory, threads or crashes, and the memory used for loading can be measured.
 */
async function serve(options: SideOptions): Promise<void> {
  const side = makeSide(options);
  let previous = Promise.resolve();
  process.on('message', ({ id, request }: { id: number; request: SideRequest }) => {
    previous = previous.then(async () => {
      try {
        process.send?.({ id, reply: await reply(side, request) });
      } catch (error) {
        process.send?.({
          id,
          failure: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
      }
    });
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ id: 0, reply: null });
  await previous;
}

async function reply(side: Side, request: SideRequest): Promise<SideReplies[keyof SideReplies]> {
  switch (request.kind) {
    case 'version':
      return side.version();
    case 'load':
      return load(side);
    case 'open':
      await side.open();
      return null;
    case 'close':
      await side.close();
      return null;
    case 'answers':
      return side.answers(request.question);
    case 'check':
      return check(side, request.question);
    case 'time':
      return time(side, request.question, request.budgetMs, request.runsMax);
  }
}

async function load(side: Side): Promise<LoadFigures> {
  const startMs = performance.now();
  await side.load();
  const seconds = (performance.now() - startMs) / 1000;
  const rssBytes = largestResidentBytes();
  return { seconds, rssBytes, bytes: await side.bytesOnDisk() };
}

/**
 * The largest resident set of this process in bytes. On Linux it is read from /proc: the value of getrusage begins with the memory of the
 * parent process, which may have held whole answers.
 */
function largestResidentBytes(): number {
  const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '';
  const kibibytes = /^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? process.resourceUsage().maxRSS;
  return Number(kibibytes) * 1024;
}

async function check(side: Side, question: Question): Promise<AnswerDigest> {
  const reader = new AnswerReader(answerColumns(question));
  await side.ask(question, (piece) => reader.take(piece));
  return reader.end();
}

async function time(side: Side, question: Question, budgetMs: number, runsMax: number): Promise<number[]> {
  const runs: number[] = [];
  const beginMs = performance.now();
  do {
    if (question.isCold === true) {
      await side.close();
      await side.open();
    }
    const startMs = performance.now();
    await side.ask(question);
    runs.push(performance.now() - startMs);
  } while (runs.length < runsMax && performance.now() - beginMs < budgetMs);
  return runs;
}

await serve(JSON.parse(process.argv[2] ?? '{}') as SideOptions);
