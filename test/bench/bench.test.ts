import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BenchResult } from '../../bench/result.js';

const root = join(import.meta.dirname, '../..');
const command = join(root, 'dist/bench/run.js');
const folder = mkdtempSync(join(tmpdir(), 'logstrata-bench-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const questionIds = [
  'newest',
  'newest-errors',
  'id-once',
  'id-nowhere',
  'id-once-unfiltered',
  'id-nowhere-unfiltered',
  'id-once-cold',
  'pattern-once',
  'pattern-all',
  'id-once-unfiltered-cold',
  'request-once',
  'request-nowhere',
  'request-in',
  'request-once-cold',
  'request-nowhere-cold',
  'common-word',
  'prefix-status-day',
  'rare-address',
  'either-rare',
  'page-after',
  'page-before',
  'three-filters',
  'count-hour',
  'count-top',
  'count-cross',
  'count-bytes',
  'avg-hour',
  'p99-path',
  'count-sum',
  'bulk',
];
/** Lines with figures of Logstrata only, since no peer is a server. */
const aloneIds = [
  'http-beside',
  ...(process.platform === 'linux' ? ['http-left-bulk', 'http-left-scan'] : []),
];
const otherIds = [
  'load',
  'load-memory',
  'size-lz4',
  'size-zstd',
  'http-newest',
  'http-pages',
  'http-bulk',
  ...aloneIds,
];
const appIds = ['app-newest', 'app-errors', 'app-name', 'app-trace', 'app-trace-nowhere', 'app-page-after'];
/** Queries for whole ids, for which peers have indexes. */
const idIds = [...questionIds.filter((id) => id.startsWith('request-')), 'app-trace', 'app-trace-nowhere'];
const appOtherIds = ['app-load', 'app-load-memory', 'app-size-lz4', 'app-size-zstd'];

describe('a tiny run of the benchmark', () => {
  const out = join(folder, 'tiny');
  let result: BenchResult;
  let printed = '';
  beforeAll(async () => {
    if (!existsSync(command)) throw new Error('the benchmark is not built: run "npm run build" first');
    // DuckDB is installed when tests run, since their own oracle uses it; a test may download nothing else.
    const args = [command, '--tiny', '--no-install', '--data', join(folder, 'data'), '--out', out];
    printed = (await promisify(execFile)(process.execPath, args)).stdout;
    result = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as BenchResult;
  }, 300_000);

  it('has every line, in the order of the record', () => {
    expect(result.lines.map(({ id }) => id)).toEqual([
      ...questionIds,
      ...otherIds,
      ...appIds,
      ...appOtherIds,
    ]);
  });

  it('has a figure of Logstrata and of a peer in every line, and names the best peer', () => {
    for (const line of result.lines) {
      expect(line.figures[line.ours]?.median, line.id).toBeGreaterThan(0);
      const peers = Object.keys(line.figures).filter((side) => !side.startsWith('logstrata'));
      if (aloneIds.includes(line.id)) {
        expect(line.best, line.id).toBeNull();
        continue;
      }
      expect(peers.length, line.id).toBeGreaterThan(0);
      expect(peers, line.id).toContain(line.best?.side);
      expect(line.best?.advantage, line.id).toBeGreaterThan(0);
    }
  });

  it('queried DuckDB, with its table and with its Parquet file, for every answer of Logstrata', () => {
    expect(result.missing).toEqual([]);
    for (const line of result.lines.filter(({ id }) => [...questionIds, ...appIds].includes(id))) {
      expect(Object.keys(line.figures), line.id).toContain('duckdb');
      expect(line.answer?.digest, line.id).toMatch(/^[0-9a-f]{32}$/);
    }
    expect(Object.keys(result.lines[0]!.figures)).toContain('duckdb-parquet');
    expect(result.versions['duckdb']).toMatch(/^DuckDB v\d/);
  });

  it('queried DuckDB over Parquet with its own and our Bloom filters only for ids, and never counted it as the best peer', () => {
    for (const { id, figures, indexed, best } of result.lines) {
      const asked = Object.keys(figures).filter((side) => /-bloom$|-our-/.test(side));
      expect(indexed.map(({ side }) => side).sort(), id).toEqual([...asked].sort());
      expect(asked, id).not.toContain(best?.side);
      if (idIds.includes(id)) expect(asked, id).toEqual(['duckdb-parquet-bloom', 'duckdb-our-parquet']);
      else if (/load|size/.test(id)) expect(asked, id).toEqual(['duckdb-parquet-bloom']);
      else expect(asked, id).toEqual([]);
    }
  });

  it('made queries that have answers', () => {
    const rows = new Map(result.lines.map(({ id, answer }) => [id, answer?.rows ?? -1]));
    expect(rows.get('newest')).toBe(100);
    expect(rows.get('id-once')).toBe(1);
    expect(rows.get('id-nowhere')).toBe(0);
    for (const id of idIds) expect(rows.get(id), id).toBe(id.includes('nowhere') ? 0 : 1);
    expect(rows.get('page-after')).toBe(100);
    expect(rows.get('bulk')).toBe(5_000);
    // Hours that have a matching record, of the hours of all records.
    expect(rows.get('count-hour')).toBeGreaterThan(500);
    expect(rows.get('count-hour')).toBeLessThanOrEqual(30 * 24);
    expect(rows.get('count-top')).toBe(10);
    expect(rows.get('count-cross')).toBeGreaterThan(30 * 24);
    expect(rows.get('count-sum')).toBe(1);
    for (const id of ['newest-errors', 'common-word', 'page-before', 'three-filters', 'app-name']) {
      expect(rows.get(id), id).toBeGreaterThan(0);
    }
  });

  it('states the machine, and prints every line', () => {
    expect(result.format).toBe('logstrata-bench/1');
    expect(result.machine.cores).toBeGreaterThan(0);
    expect(result.sets.map(({ name, rows }) => [name, rows])).toEqual([
      ['web', 20_000],
      ['app', 5_000],
    ]);
    const report = readFileSync(`${out}.md`, 'utf8');
    for (const { title } of result.lines) {
      expect(printed).toContain(title);
      expect(report).toContain(title);
    }
  });

  it('draws every line', () => {
    const plot = readFileSync(`${out}.svg`, 'utf8');
    expect(plot).toMatch(/^<svg [^>]*>/);
    expect(plot.match(/<rect /g)).toHaveLength(1 + result.lines.filter(({ best }) => best !== null).length);
    expect(plot).not.toMatch(/NaN|Infinity|undefined/);
    // Titles end at the axis: each has room for its letters, which take up to 7 pixels.
    const ends = [...plot.matchAll(/<text x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<]*)</g)];
    expect(ends).toHaveLength(result.lines.length);
    for (const [, x, title] of ends) expect(Number(x), title).toBeGreaterThanOrEqual(title!.length * 6.8);
  });
});

describe('the command line of the benchmark', () => {
  const run = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [command, ...args], { encoding: 'utf8' });

  it('refuses invalid arguments with a message and exit code 2', () => {
    for (const [args, said] of [
      [['--peers', 'oracle'], '--peers knows duckdb, clickhouse, sqlite, ripgrep, not "oracle"'],
      [['--rows', '-5'], '--rows'],
      [['--quick', '--tiny'], '--quick and --tiny exclude each other'],
      [['--queries', 'newest,nothing'], 'nothing'],
      [['--fast'], '--fast'],
    ] as const) {
      const { status, stderr } = run(...args);
      expect(stderr).toContain(said);
      expect(status).toBe(2);
    }
  });

  it('shows its options', () => {
    const { status, stdout } = run('--help');
    expect(status).toBe(0);
    expect(stdout).toContain('--quick');
  });
});
