import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { fc } from '../cases.js';
import type { ForeignFile, ForeignFormat } from '../../engine/foreign/foreign-file.js';
import { describeForeignTask } from '../../engine/foreign/read-foreign.js';
import { importTask } from '../../engine/store/attached/import-tasks.js';
import { LogstrataError } from '../../engine/core/errors.js';
import { GuardedThread } from '../../engine/workers/guarded-thread.js';
import { readingOf } from './reading.js';

/** The time limit for reading one file, and the memory limit for reading all. */
const msMax = 5000;
const bytesMax = 512 * 1024 * 1024;

type Damage =
  | { readonly kind: 'byte' | 'zeros' | 'ones'; readonly at: number; readonly value: number }
  | { readonly kind: 'cut' | 'gone'; readonly at: number; readonly value: number };

/** A place from 0 to 1, more often near the end, where footers are. */
const places = fc.oneof(
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.double({ min: 0, max: 1, noNaN: true }).map((place) => 1 - place ** 3 / 10),
);

const damages: fc.Arbitrary<readonly Damage[]> = fc.array(
  fc.record({
    kind: fc.constantFrom<Damage['kind']>('byte', 'byte', 'byte', 'byte', 'zeros', 'ones', 'cut', 'gone'),
    at: places,
    value: fc.nat(255),
  }),
  { minLength: 1, maxLength: 4 },
);

/** A copy with damage. The last `ending` bytes are preserved, so that the bytes before them are read at all. */
function damaged(whole: Uint8Array, how: readonly Damage[], ending: number): Uint8Array {
  let bytes = Uint8Array.from(whole);
  for (const { kind, at, value } of how) {
    const from = Math.floor(at * (bytes.length - ending));
    const to = Math.min(bytes.length - ending, from + 1 + (value % 16));
    if (kind === 'byte') bytes[from] = value;
    else if (kind === 'zeros' || kind === 'ones') bytes.fill(kind === 'zeros' ? 0 : 255, from, to);
    else
      bytes = Uint8Array.from([
        ...bytes.subarray(0, from),
        ...bytes.subarray(kind === 'cut' ? bytes.length - ending : to),
      ]);
  }
  return bytes;
}

/**
 * Reads damaged copies of files like the program, on a guarded thread: each must be read, or refused with an error that names it, in
 * limited time and memory.
 */
export async function readDamagedCopies(
  files: readonly Uint8Array[],
  format: ForeignFormat,
  copyPath: string,
  ending: number,
  numRuns: number,
): Promise<void> {
  const thread = new GuardedThread({ msMax });
  const attempt = async <T>(reading: Promise<T>): Promise<T | null> => {
    try {
      return await reading;
    } catch (error) {
      expect(error).toBeInstanceOf(LogstrataError);
      const { code, path, message } = error as LogstrataError;
      expect(['damaged', 'unsupported', 'limit', 'invalid']).toContain(code);
      expect(message).not.toContain('took more than');
      expect(path).toBe(copyPath);
      return null;
    }
  };
  try {
    await fc.assert(
      fc.asyncProperty(fc.nat(files.length - 1), damages, async (which, how) => {
        await writeFile(copyPath, damaged(files[which]!, how, ending));
        const about = { doing: `reading ${copyPath}`, path: copyPath };
        const file: ForeignFile | null = await attempt(
          thread.run(describeForeignTask, { path: copyPath, format }, about),
        );
        for (const [rowGroup, { rows }] of file?.rowGroups.slice(0, 3).entries() ?? [])
          for (const column of rows === 0 ? [] : file!.columns.slice(0, 20).keys()) {
            const read = readingOf(file!, copyPath, column, rowGroup);
            // A row group may claim any number of rows.
            const job = {
              read: { ...read, spans: read.spans.slice(0, 100) },
              change: { unit: null, format: null, conversion: 'none' as const, type: read.column.type },
            };
            await attempt(thread.run(importTask, job, about));
          }
        expect(process.memoryUsage().rss).toBeLessThan(bytesMax);
      }),
      { numRuns },
    );
  } finally {
    await thread.close();
  }
}
