import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { between, type Random } from '../model/random.js';

/** Runtimes divide lines after so many bytes. */
const pieceBytes = 16 * 1024;

/** One line in so many is divided. */
const dividedOneIn = 50;

/** The agents of such containers. A record has the number of its line, and that of its first piece in the line. */
export function containerAgent(format: 'docker' | 'cri'): string {
  const path = format === 'docker' ? 'docker/(?P<pod>[^/]+)/.*-json\\.log' : 'pods/(?P<pod>[^/]+)/*/.*\\.log';
  return `fields:
  - { name: time, timestamp: { format: rfc3339 }, source: container.time }
  - { name: pod }
  - { name: n, type: int }
  - { name: part, type: int }
  - { name: text, source: container.text }
file:
  path: '../${path}'
  format: ${format}
  payload: plain
  regex: '^(?P<n>\\d+)/(?P<part>\\d+):'
`;
}

/** All lines of the containers of one agent. */
export class WrittenLines {
  /** By number of the line, its pieces. */
  readonly lines: string[][] = [];
  /** The lines whose pieces were all written at once. */
  readonly atOnce = new Set<number>();

  /** The next line. Each piece begins with the number of its line and its own. */
  next(pieces: number): string[] {
    const n = this.lines.length;
    const line = Array.from({ length: pieces }, (_, i) => {
      const isLast = i === pieces - 1;
      return `${n}/${i}:`.padEnd(isLast ? 40 + (n % 90) : pieceBytes, 'x');
    });
    this.lines.push(line);
    return line;
  }

  /** How the texts of records differ from what was written: pieces that are lost or repeated, lines that are wrongly divided. */
  compare(texts: readonly string[]): Record<'lost' | 'repeated' | 'divided' | 'foreign', string[]> {
    const left = new Set(this.lines.flat());
    const seen = new Set<string>();
    const different = {
      lost: [] as string[],
      repeated: [] as string[],
      divided: [] as string[],
      foreign: [] as string[],
    };
    const nameOf = (text: string): string => text.slice(0, text.indexOf(':') + 1);
    for (const text of texts) {
      const pieces = text.split(/(?<=x)(?=\d+\/\d+:)/);
      for (const piece of pieces) {
        if (left.delete(piece)) seen.add(piece);
        else different[seen.has(piece) ? 'repeated' : 'foreign'].push(nameOf(piece));
      }
      const n = Number.parseInt(text);
      if (this.atOnce.has(n) && text !== this.lines[n]!.join('')) different.divided.push(nameOf(text));
    }
    for (const piece of left) different.lost.push(nameOf(piece));
    return different;
  }
}

/** What a container needs of the test around it. */
export interface ContainerContext {
  readonly random: Random;
  readonly written: WrittenLines;
  /** Whether a piece of a line is stored; false while the server is down. */
  readonly isStored: (piece: string) => Promise<boolean>;
}

interface Generation {
  path: string;
  /** The last piece in it. */
  readonly last: string;
}

/** Generations that are kept beside the log, if no more are unread, as Docker's `max-file` and the kubelet's `containerLogMaxFiles` say. */
const keptMax = 3;

/**
 * A container whose log is written, rotated, compressed and removed as Docker or the kubelet does, except that nothing is
 * removed before it is stored.
 */
export class NumberedContainer {
  private handle: number;
  private last = '';
  private generations: Generation[] = [];
  private rotations = 0;

  /** @param log path of its log, whose folders may not exist yet */
  constructor(
    private readonly format: 'docker' | 'cri',
    private readonly log: string,
    private readonly context: ContainerContext,
  ) {
    mkdirSync(dirname(log), { recursive: true });
    this.handle = openSync(log, 'a');
  }

  /** Writes lines for a while, in bursts between which the log is sometimes rotated. */
  async write(bursts: number, isOver: () => boolean): Promise<void> {
    const { random } = this.context;
    for (let i = 0; i < bursts && !isOver(); i++) {
      await delay(between(random, 0, 150));
      await this.burst();
      if (random() < 0.06) await this.rotate();
    }
  }

  /** Ends the container and removes its folder, and that of its pod, once all is stored that is in it. */
  async remove(pod: string | undefined, isOver: () => boolean): Promise<void> {
    closeSync(this.handle);
    for (const last of [this.last, ...this.generations.map((each) => each.last)])
      while (last !== '' && !(await this.context.isStored(last))) {
        if (isOver()) return;
        await delay(50);
      }
    rmSync(dirname(this.log), { recursive: true });
    if (pod === undefined) return;
    await delay(between(this.context.random, 0, 20));
    rmSync(pod, { recursive: true });
  }

  private async burst(): Promise<void> {
    const { random, written } = this.context;
    for (let count = between(random, 1, 10); count > 0; count--) {
      const stream = random() < 0.8 ? 'stdout' : 'stderr';
      const isDivided = between(random, 0, dividedOneIn) === 0;
      const pieces = written.next(isDivided ? between(random, 2, 4) : 1);
      const isSlow = isDivided && random() < 0.5;
      if (!isSlow) {
        written.atOnce.add(written.lines.length - 1);
        await this.put(
          pieces,
          pieces.map((piece, i) => this.lineOf(piece, stream, i < pieces.length - 1)).join(''),
        );
        continue;
      }
      for (const [i, piece] of pieces.entries()) {
        if (i > 0) await delay(between(random, 0, 100));
        if (i > 0 && random() < 0.2) await this.rotate();
        await this.put([piece], this.lineOf(piece, stream, i < pieces.length - 1));
      }
    }
  }

  /** Writes lines, sometimes not in one write. */
  private async put(pieces: readonly string[], text: string): Promise<void> {
    const { random } = this.context;
    const bytes = Buffer.from(text);
    const cut = random() < 0.03 ? between(random, 1, bytes.length) : bytes.length;
    writeSync(this.handle, bytes.subarray(0, cut));
    if (cut < bytes.length) {
      await delay(between(random, 0, 60));
      writeSync(this.handle, bytes.subarray(cut));
    }
    this.last = pieces.at(-1)!;
  }

  private lineOf(text: string, stream: string, isPartial: boolean): string {
    const time = new Date().toISOString().replace('Z', '123456Z');
    if (this.format === 'cri') return `${time} ${stream} ${isPartial ? 'P' : 'F'} ${text}\n`;
    return `${JSON.stringify({ log: isPartial ? text : `${text}\n`, stream, time })}\n`;
  }

  /** Puts the log aside. Docker counts the generations, the kubelet gives them the time; either compresses all but those that may be written. */
  private async rotate(): Promise<void> {
    if (this.last === '') return;
    const { random } = this.context;
    const pause = (): Promise<void> => delay(between(random, 0, 30));
    while (this.generations.length >= keptMax) {
      const { path, last } = this.generations.at(-1)!;
      if (!(await this.context.isStored(last))) break;
      this.generations.pop();
      unlinkSync(path);
    }
    if (this.format === 'docker')
      for (let i = this.generations.length; i > 0; i--) {
        const generation = this.generations[i - 1]!;
        const next = generation.path.replace(/\.\d+(\.gz)?$/, `.${i + 1}$1`);
        renameSync(generation.path, next);
        generation.path = next;
      }
    else if (this.generations.length > 0) await this.compress(this.generations[0]!);
    await pause();
    const day = new Date(Date.UTC(2026, 10, 28) + 1000 * this.rotations++).toISOString();
    const aside = `${this.log}.${this.format === 'docker' ? 1 : day.replace(/[-:]|\..*/g, '').replace('T', '-')}`;
    renameSync(this.log, aside);
    await pause();
    closeSync(this.handle);
    this.handle = openSync(this.log, 'a');
    this.generations.unshift({ path: aside, last: this.last });
    this.last = '';
    await pause();
    if (this.format === 'docker') await this.compress(this.generations[0]!);
  }

  private async compress(generation: Generation): Promise<void> {
    const { path } = generation;
    writeFileSync(`${path}.tmp`, gzipSync(readFileSync(path)));
    renameSync(`${path}.tmp`, `${path}.gz`);
    await delay(between(this.context.random, 0, 20));
    unlinkSync(path);
    generation.path = `${path}.gz`;
  }
}

/** Writes containers of a format one after another until `isOver`. The folders of the last ones stay. */
export async function runContainers(
  format: 'docker' | 'cri',
  folder: string,
  name: string,
  context: ContainerContext,
  isOver: () => boolean,
): Promise<void> {
  const removals: Promise<void>[] = [];
  for (let i = 0; !isOver(); i++) {
    const id = `${name}${i}`;
    const pod = join(folder, 'pods', `shop_${id}_${id.padStart(8, '0')}`);
    const log =
      format === 'docker' ? join(folder, 'docker', id, `${id}-json.log`) : join(pod, 'web', '0.log');
    const container = new NumberedContainer(format, log, context);
    await container.write(between(context.random, 3, 60), isOver);
    removals.push(container.remove(format === 'cri' ? pod : undefined, isOver));
  }
  await Promise.all(removals);
}
