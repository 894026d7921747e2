import type { SingleBar } from 'cli-progress';
import { tell } from './terminal.js';
import { cutToWidth, printable, textWidth } from './text-width.js';

/** Shows the progress of a long piece of work on standard error. */
export interface Progress {
  /** `fraction` is from 0 to 1, or null where the total is not known. `detail` gives figures. */
  update(fraction: number | null, detail: string): void;
  /** Removes the progress from the screen, so that other lines can follow. May be called twice. */
  stop(): void;
}

/** Milliseconds between two lines where standard error is not a terminal: frequent enough to show that work goes on, rare enough for a log file. */
const linesEveryMs = 5000;

/** Starts to show progress: a bar on a terminal, else plain lines, which do not appear for work that takes only seconds. */
export function startProgress(label: string): Progress {
  return process.stderr.isTTY ? new BarProgress(label) : new LineProgress(label);
}

/** Shows progress while `work` runs. */
export async function withProgress<T>(label: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const progress = startProgress(label);
  try {
    return await work(progress);
  } finally {
    progress.stop();
  }
}

const barWidth = 24;

interface BarPayload {
  readonly fraction: number | null;
  readonly detail: string;
}

/** Columns of a label that are always shown, even if the line becomes too long. */
const labelWidthMin = 12;

/** A line of progress of at most `width` columns. A long label is cut in the middle, so that the bar and the figures stay visible. */
export function drawBar(label: string, fraction: number | null, detail: string, width: number): string {
  const done = Math.floor(Math.min(1, Math.max(0, fraction ?? 0)) * barWidth);
  const percent = String(Math.floor((fraction ?? 0) * 100)).padStart(3);
  const rest =
    fraction === null
      ? `: ${detail}`
      : ` ${'█'.repeat(done)}${'░'.repeat(barWidth - done)} ${percent} % ${detail}`;
  return cutToWidth(printable(label), Math.max(labelWidthMin, width - textWidth(rest))) + rest;
}

/** A bar on a terminal. The library is loaded only for terminals; the bar appears once that is done, and the work does not wait for it. */
class BarProgress implements Progress {
  readonly #label: string;
  #payload: BarPayload = { fraction: 0, detail: '' };
  #bar: SingleBar | undefined;
  #isOver = false;

  constructor(label: string) {
    this.#label = label;
    void this.#begin();
  }

  async #begin(): Promise<void> {
    const { SingleBar } = await import('cli-progress');
    if (this.#isOver) return;
    this.#bar = new SingleBar({
      format: (_options, _params, { fraction, detail }: BarPayload) =>
        drawBar(this.#label, fraction, detail, process.stderr.columns || 80),
      fps: 8,
      stream: process.stderr,
      clearOnComplete: true,
      // The command handles signals itself, as it has files to clean up.
      gracefulExit: false,
    });
    this.#bar.start(1, 0, this.#payload);
  }

  update(fraction: number | null, detail: string): void {
    this.#payload = { fraction, detail };
    this.#bar?.update(this.#payload);
  }

  stop(): void {
    this.#isOver = true;
    this.#bar?.stop();
  }
}

class LineProgress implements Progress {
  readonly #label: string;
  #toldMs = Date.now();

  constructor(label: string) {
    this.#label = label;
  }

  update(fraction: number | null, detail: string): void {
    const nowMs = Date.now();
    if (nowMs - this.#toldMs < linesEveryMs) return;
    this.#toldMs = nowMs;
    const percent = fraction === null ? [] : [`${Math.floor(fraction * 100)} %`];
    tell(`${this.#label}: ${[...percent, ...(detail === '' ? [] : [detail])].join(', ')}`);
  }

  stop(): void {
    // Lines that were printed are not removed.
  }
}
