import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it, vi } from 'vitest';
import { idleMs } from '../../engine/core/limits.js';
import { OpenFiles } from '../../engine/store/disk/open-files.js';
import { root } from '../tidy/source-files.js';

const folder = mkdtempSync(join(tmpdir(), 'logstrata-files-'));
const paths = Array.from({ length: 40 }, (_, i) => {
  const path = join(folder, `f${i}`);
  writeFileSync(path, `content of ${i}`);
  return path;
});
afterAll(() => rmSync(folder, { recursive: true }));

function text(files: OpenFiles, path: string, position: number, length: number): string {
  const target = new Uint8Array(length);
  return Buffer.from(target.subarray(0, files.read(path, position, target))).toString('utf8');
}

it('keeps at most the allowed number of files open, and reads each correctly', () => {
  const files = new OpenFiles(3);
  for (let turn = 0; turn < 2; turn++) {
    paths.forEach((path, i) => {
      expect(text(files, path, 8, 100)).toBe(`of ${i}`);
      expect(files.count).toBeLessThanOrEqual(3);
    });
  }
  expect(text(files, paths[39]!, 0, 4)).toBe('cont');
  files.close();
  expect(files.count).toBe(0);
  expect(text(files, paths[0]!, 11, 9)).toBe('0');
  files.close();
});

it('continues reading a file that was removed while open, and names a file that is missing', () => {
  const files = new OpenFiles(3);
  const path = join(folder, 'removed');
  writeFileSync(path, 'still there');
  expect(text(files, path, 0, 5)).toBe('still');
  rmSync(path);
  expect(text(files, path, 6, 5)).toBe('there');
  files.close();
  expect(() => files.read(path, 0, new Uint8Array(1))).toThrow(
    expect.objectContaining({ code: 'not_found', path }),
  );
});

it('closes files that were not used for a while', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  try {
    const files = new OpenFiles(10);
    text(files, paths[0]!, 0, 1);
    vi.advanceTimersByTime(idleMs * 1.25);
    text(files, paths[1]!, 0, 1);
    vi.advanceTimersByTime(idleMs * 0.75);
    expect(files.count).toBe(1);
    vi.advanceTimersByTime(idleMs);
    expect(files.count).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it('closes its own files when the process may open no more', async () => {
  const script = `import { openSync } from 'node:fs';
import { OpenFiles } from '${pathToFileURL(join(root, 'dist/engine/store/disk/open-files.js')).href}';
const files = new OpenFiles(30);
const paths = ${JSON.stringify(paths)};
const byte = new Uint8Array(1);
for (const path of paths.slice(0, 20)) files.read(path, 0, byte);
try { for (;;) openSync(paths[0], 'r'); } catch (error) { console.log(error.code); }
for (const path of paths) files.read(path, 0, byte);
console.log(files.count);`;
  const command = `ulimit -n 80; exec "${process.execPath}" --input-type=module -`;
  const running = promisify(execFile)('/bin/sh', ['-c', command]);
  running.child.stdin!.end(script);
  expect((await running).stdout).toBe('EMFILE\n20\n');
});
