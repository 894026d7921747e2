import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BillionResult } from '../../bench/growth/billion.js';
import type { GrowthResult } from '../../bench/growth/growth.js';
import { portionsOf } from '../../bench/growth/web-store.js';
import { root } from '../tidy/source-files.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);
const canDropFromPageCache = spawnSync('dd', ['if=/dev/null', 'iflag=nocache', 'count=0']).status === 0;
/** False where the temporary folder is in memory (tmpfs), and where reads from disks are not counted. */
const isOnDisk = statfsSync(tmpdir()).type !== 0x01021994 && existsSync('/proc/self/io');

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-growth-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe('growth', () => {
  it('runs every query at each size, and writes the table, the plot and the record', async () => {
    const folder = newFolder();
    const out = join(folder, 'out/growth');
    const data = join(folder, 'data');
    const { stdout } = await run(process.execPath, [
      script,
      'growth',
      '--tiny',
      '--data',
      data,
      '--out',
      out,
    ]);
    const { steps, slopes } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as GrowthResult;
    expect(steps.map(({ records }) => records)).toEqual([5_000, 10_000]);
    for (const { asked } of steps) {
      expect(asked.map(({ id }) => id)).toEqual([
        'newest',
        'old-day',
        'id-once',
        'id-nowhere',
        'text-once',
        'text-nowhere',
      ]);
      const [newest, oldDay, ...needles] = asked;
      expect(newest!.rows).toBe(100);
      expect(oldDay!.rows).toBeGreaterThan(0);
      expect(needles.map(({ rows }) => rows)).toEqual([1, 0, 1, 0]);
      for (const { id, firstMs, warmMs, first, fromDisk } of asked) {
        if (canDropFromPageCache) expect(fromDisk!.firstMs.median).toBeGreaterThan(0);
        if (canDropFromPageCache && isOnDisk) expect(fromDisk!.bytes).toBeGreaterThan(first.bytesRead / 2);

        expect(firstMs.median).toBeGreaterThan(0);
        expect(warmMs.median).toBeGreaterThan(0);
        // The warm-up has read the newest records.
        if (id === 'newest') expect(first.bytesRead).toBe(0);
        else expect(first.bytesRead).toBeGreaterThan(0);
      }
      expect(needles[1]!.first.rowGroupsScanned).toBe(0);
      expect(needles[1]!.first.valuePiecesRead).toBeGreaterThan(0);
      // After the first run, they are in memory.
      expect(needles[1]!.warm.valuePiecesRead).toBe(0);
    }
    expect(slopes).toHaveLength(6);
    for (const { title } of slopes!) {
      expect(stdout).toContain(`| ${title} |`);
      expect(readFileSync(`${out}.svg`, 'utf8')).toContain(title);
    }
    expect(readFileSync(`${out}.svg`, 'utf8')).not.toMatch(/NaN|Infinity|undefined/);
    expect(readFileSync(`${out}.md`, 'utf8')).toContain('](growth.svg)');
    expect(readdirSync(data)).toEqual([]);
  });

  it('fills an archive at one rate, and its portions are consecutive up to the end', () => {
    const portions = portionsOf([10, 20, 40], 40, false);
    expect(portions.map(({ rows, days }) => [rows, days])).toEqual([
      [10, 10],
      [10, 10],
      [20, 20],
    ]);
    const ends = portions.map(({ startMs, days }) => startMs + days * 86_400_000);
    expect(portions.slice(1).map(({ startMs }) => startMs)).toEqual(ends.slice(0, -1));
  });

  it('leaves no files after Ctrl-C', async () => {
    const folder = newFolder();
    const out = join(folder, 'out/growth');
    const args = [script, 'growth', '--rows', '20k', '--days', '2', '--data', folder, '--out', out];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      if (!said.includes('newest 100') && piece.includes('newest 100')) child.kill('SIGINT');
      said += piece;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect(said).toContain('nothing is left of it');
    expect(code).toBe(130);
    expect(readdirSync(folder)).toEqual([]);
    expect(existsSync(`${out}.json`)).toBe(false);
  }, 60_000);

  it('refuses invalid arguments with a message and exit code 2, and shows its options', () => {
    for (const [args, sentence] of [
      [['--rows', '10M,5M'], '--rows must ascend'],
      [['--rows', 'many'], '--rows must be numbers of records'],
      [['--days', '0'], '--days must be a whole number'],
      [['--repeat', 'x'], '--repeat must be a whole number'],
      [['--billion', '--rows', '5k'], '--billion has its own records'],
      [['--twice'], "'--twice'"],
    ] as const) {
      const { status, stderr } = spawnSync(process.execPath, [script, 'growth', ...args], {
        encoding: 'utf8',
      });
      expect(stderr).toContain(sentence);
      expect(status).toBe(2);
    }
    const { status, stdout } = spawnSync(process.execPath, [script, 'growth', '--help'], {
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stdout).toContain('--billion');
  }, 60_000);
});

describe('simulated segments', () => {
  it('are queried through their filters only, and existing values are found in the real segment', async () => {
    const folder = newFolder();
    const out = join(folder, 'out/billion');
    const data = join(folder, 'data');
    await run(process.execPath, [script, 'growth', '--billion', '--tiny', '--data', data, '--out', out]);
    const { records, madeUp, asked } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as BillionResult;
    expect(records).toBe(65_536 + 3 * 64 * 65_536);
    expect(madeUp).toMatchObject({ segments: 3, rowGroups: 192 });
    expect(asked.map(({ rows }) => rows)).toEqual([1, 0, 1, 0]);
    expect(asked.map(({ warm }) => warm.rowGroups)).toEqual([193, 193, 193, 193]);
    expect(asked.map(({ warm }) => warm.rowGroupsScanned)).toEqual([1, 0, 1, 0]);
    for (const { first } of asked.slice(0, 2)) {
      // Sketches let a sixth of the row groups pass.
      expect(first.valuePiecesRead).toBeGreaterThan(3);
      expect(first.valuePiecesRead).toBeLessThan(3 + 192 / 2);
    }
    // Each row group is searched for grams until one is missing.
    for (const { first } of asked.slice(2)) expect(first.gramPiecesRead).toBeGreaterThan(192);
    const page = readFileSync(`${out}.md`, 'utf8');
    for (const { title } of asked) expect(page).toContain(`| ${title} |`);
    expect(readdirSync(data)).toEqual([]);
  });
});
