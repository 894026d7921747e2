import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { describeUnless } from '../needs.js';
import { run } from './here.js';
import { recordsOf, workFolder } from './process.js';

/** What comes of a log that `agent new` and `load` are given: its records, rejected lines, and the main fields of its first record, of the message its first line. */
type Tried = readonly [
  records: number,
  rejected: number,
  time: string | null,
  level: string | number | null,
  message: string | null,
  verdict: string,
];

const right = 'right';
const timeless = 'right: the log has no times';
const start = '2026-11-28T05:00:00.000Z';

const tried: Readonly<Record<string, Tried>> = {
  'cloudfront.log': [120, 0, start, null, null, right],
  'cloudtrail.json': [20, 0, start, null, null, right],
  'cri-java.log': [120, 0, start, 'INFO', 'order 4711 placed', right],
  'cri-json.log': [120, 0, start, 'info', 'order 4711 placed', right],
  'cri-partial.log': [120, 0, start, null, 'order 4711 placed', right],
  'cri.log': [120, 0, start, null, 'retrying upstream', right],
  'csv-semicolon.csv': [120, 0, start, null, null, right],
  'dmesg.log': [
    120,
    0,
    null,
    null,
    'usb 1-1: new high-speed USB device number 2',
    'right: the log has no times, but seconds since the machine started',
  ],
  'docker-json-inner.log': [120, 0, start, 'error', 'connection reset by peer', right],
  'docker-json-partial.log': [120, 0, start, null, 'cache miss for key user:42', right],
  'docker-json.log': [
    120,
    0,
    start,
    null,
    'connection reset by peer "quoted" \u001b[32mgreen\u001b[0m',
    right,
  ],
  'dotnet-console.log': [120, 0, null, 'info', 'retrying upstream', timeless],
  'ecs.log': [120, 0, start, 'error', 'order 4711 placed', right],
  'gelf.log': [120, 0, start, 4, 'cache miss for key user:42', right],
  'iis.log': [120, 0, start, null, null, right],
  'journal-export.log': [120, 0, start, 6, 'retrying upstream', right],
  'json-array.json': [20, 0, start, 'info', 'retrying upstream', right],
  'laravel.log': [120, 0, start, 'INFO', 'connection reset by peer {"userId":4}', right],
  'latin1.log': [120, 0, start, 'INFO', 'Bestellung für Müller über 0 Stück', 'right: encoding is written'],
  'leef-cef.log': [120, 0, start, null, null, right],
  'log4j2-json.log': [120, 0, start, 'ERROR', 'order 4711 placed', right],
  'log4net.log': [120, 0, start, 'INFO', 'connection reset by peer', right],
  'mixed-json-text.log': [
    120,
    0,
    '2026-11-28T05:00:01.371Z',
    'info',
    'cache miss for key user:42',
    'right: texts are records',
  ],
  'multidoc-json.log': [20, 0, start, 'info', 'request finished in 12 ms', right],
  'mysql-error.log': [120, 0, start, 'System', 'connection reset by peer', right],
  'mysql-slow.log': [
    121,
    0,
    start,
    null,
    '/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:',
    "right: the lines of the server's start are a record",
  ],
  'otel-json.log': [240, 0, start, 'ERROR', 'order 4711 placed', right],
  'php-error.log': [120, 0, start, 'Warning', 'request finished in 12 ms in /srv/x.php on line 42', right],
  'postgres-csv.csv': [
    120,
    0,
    start,
    'ERROR',
    'relation "x" does not exist, connection reset by peer',
    right,
  ],
  'rails-tagged.log': [
    360,
    0,
    start,
    'INFO',
    '[930cfd00] Started GET "/login?next=%2F" for 192.168.1.20 at 2026-11-28 05:00:00 +0000',
    right,
  ],
  'rails.log': [120, 0, start, null, 'Processing by OrdersController#show as HTML', right],
  'serilog-clef.log': [120, 0, start, 'Error', 'Order {OrderId} placed', right],
  'traefik-clf.log': [120, 0, start, null, null, right],
  'uvicorn.log': [120, 0, null, 'INFO', null, timeless],
  'vpc-flow-nohead.log': [120, 0, start, null, null, right],
  'windows-utf16.log': [120, 0, start, 'Info', 'connection reset by peer', 'right: encoding is written'],
  'zeek-conn.log': [120, 0, start, null, null, right],
};

const folder = ['../shared/formats', '../../shared/formats']
  .map((path) => resolve(path))
  .find((path) => existsSync(path));
const missingFormats = folder === undefined ? 'the formats are not beside the checkout' : null;

describeUnless(missingFormats, 'the formats that were tried', () => {
  const names = folder === undefined ? [] : readdirSync(folder).sort();

  it('are those of the table', () => {
    expect(names).toEqual(Object.keys(tried).sort());
  });

  it.each(names)('become records with time, level and message: %s', async (name) => {
    const [records, rejected, ...values] = tried[name] ?? [0, 0];
    const work = workFolder();
    const log = join(folder!, name);
    expect(await run(work, ['agent', 'new', 'tried', '--log', log])).toMatchObject({ code: 0, stderr: '' });
    const loaded = JSON.parse((await run(work, ['load', 'tried', log, '--json'])).stdout) as object;
    expect(loaded).toMatchObject({ records, rejected, unreadableValues: 0, replacedBytes: 0 });
    const { stdout } = await run(work, ['query', 'tried', 'after=0000000000000000', '--limit', '1']);
    const { time, level, message } = recordsOf(stdout)[0] as Record<string, string | number | undefined>;
    const first = [
      time === undefined ? null : new Date(time).toISOString(),
      level ?? null,
      (message as string | undefined)?.split('\n')[0] ?? null,
    ];
    expect(first).toEqual(values.slice(0, 3));
  });
});
