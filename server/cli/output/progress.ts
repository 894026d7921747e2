import type { SingleBar } from 'cli-progress';
import { tell } from './terminal.js';
import { cutToWidth, textWidth } from './text-width.js';

/** How far a long piece of work is, shown on standard error while it lasts. */
export interface Progress {
  /** `fraction` is 0 … 1, or null where the end is not known; `detail` says it in figures. */
  update(fraction: number | null, detail: string): void;
  /** Removes what is shown, so that other lines can follow. Safe to call twice. */
  stop(): void;
}

/** Time between two lines where no terminal is there to draw on: often enough to see life, rare enough for a log file. */
const linesEveryMs = 5000;

/** A bar on a terminal; elsewhere plain lines, and none at all for work that is done within seconds. */
export function startProgress(label: string): Progress {
  return process.stderr.isTTY ? new BarProgress(label) : new LineProgress(label);
}

/** Shows progress while `work` lasts. */
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

/** Of a label at least so much is shown, wherever the line ends then. */
const labelWidthMin = 12;

/** One line of at most `width` columns: of a long label the middle is left out, so that the bar and the figures are seen. */
export function drawBar(label: string, fraction: number | null, detail: string, width: number): string {
  const done = Math.floor(Math.min(1, Math.max(0, fraction ?? 0)) * barWidth);
  const percent = String(Math.floor((fraction ?? 0) * 100)).padStart(3);
  const rest =
    fraction === null
      ? `: ${detail}`
      : ` ${'█'.repeat(done)}${'░'.repeat(barWidth - done)} ${percent} % ${detail}`;
  return cutToWidth(label, Math.max(labelWidthMin, width - textWidth(rest))) + rest;
}

/** The bar comes once what draws it is loaded: only a terminal needs that, and work need not wait for it. */
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
      // Signals belong to the command, which has files to leave in good order.
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
    // Lines stay as they are.
  }
}
