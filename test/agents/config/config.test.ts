import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError, formatProblem } from '../../../agents/definition/config-error.js';
import { parseConfig, readConfig } from '../../../agents/definition/config-file.js';
import { defaultConfig, parseListen } from '../../../agents/definition/config.js';

function problemsOf(text: string): string {
  try {
    parseConfig(text, 'config.yaml');
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem).join('\n');
    throw error;
  }
}

describe('config.yaml', () => {
  test('has a default for every setting', () => {
    expect(parseConfig('', 'config.yaml')).toEqual(defaultConfig);
    expect(parseConfig('server: {}\nstorage:\nfile_input: {}\n', 'config.yaml')).toEqual(defaultConfig);
    expect(defaultConfig).toMatchObject({
      server: {
        listen: { host: '127.0.0.1', port: 2111 },
        corsOrigin: [],
        timezone: 'UTC',
        limitMax: 1_000_000,
      },
      storage: { path: 'data/store', zstdAfterMs: 7 * 86_400_000, cacheBytes: null },
      fileInput: { limit: 0, graceMs: 3_600_000, flushMs: 250 },
    });
  });

  test('may set all of them', () => {
    const text = `
server:
  listen: 0.0.0.0:8080
  cors: { origin: [https://a.example, "http://localhost:3000"] }
  timezone: Europe/Oslo
  limit_max: 50_000
  queries_max: 4
  followers_max: 20
  query_timeout: 1m30s
  query_bytes_max: 10gb
  client_rate: 2kb
  answer_timeout: 10m
  trusted_proxies: [10.0.0.0/8, '::1']
  client_timeout: 2m
  hosts: [Logs.example.com, logs]
  tls: { cert: tls/cert.pem, key: /etc/keys/key.pem }
  console_tls: { cert: ../console.pem, key: console.key }
  reader: { writer: 'http://logs-1:2112', lag: 5s }
watch: yes
storage: { path: store, zstd_after: 2d, cache: 1.5gb }
s3: { endpoint: 'https://s3.example:9000/', region: eu-1, profile: logs, path_style: no, cache: 2gb }
file_input: { limit: 100, grace: 2h, flush: 100ms, tail_timeout: 8s }
`;
    expect(parseConfig(text, '/etc/logstrata/config.yaml')).toEqual({
      server: {
        listen: { host: '0.0.0.0', port: 8080 },
        corsOrigin: ['https://a.example', 'http://localhost:3000'],
        timezone: 'Europe/Oslo',
        limitMax: 50_000,
        queriesMax: 4,
        followersMax: 20,
        queryTimeoutMs: 90_000,
        queryBytesMax: 10 * 2 ** 30,
        clientRateMin: 2048,
        answerTimeoutMs: 600_000,
        trustedProxies: ['10.0.0.0/8', '::1'],
        clientTimeoutMs: 120_000,
        hosts: ['logs.example.com', 'logs'],
        reader: { writer: 'http://logs-1:2112', tokenFile: null, caFile: null, lagMs: 5000 },
        tls: { cert: '/etc/logstrata/tls/cert.pem', key: '/etc/keys/key.pem' },
        consoleTls: { cert: '/etc/console.pem', key: '/etc/logstrata/console.key' },
        console: defaultConfig.server.console,
        slowQueryMs: defaultConfig.server.slowQueryMs,
      },
      storage: {
        path: '/etc/logstrata/store',
        zstdAfterMs: 2 * 86_400_000,
        cacheBytes: 1.5 * 2 ** 30,
        far: null,
      },
      s3: {
        endpoint: 'https://s3.example:9000/',
        region: 'eu-1',
        profile: 'logs',
        pathStyle: false,
        cacheBytes: 2 * 2 ** 30,
      },
      fileInput: { limit: 100, graceMs: 7_200_000, flushMs: 100, tailTimeoutMs: 8000 },
      watch: true,
      notes: [],
    });
  });

  test('of the public service is accepted, with one note for each unused setting', () => {
    const text = `
server:
  listen: 127.0.0.1:2221
  cors:
    origin: "*"
storage:
  sqlite: { path: /var/lib/x.db, journal_mode: wal, cache_size: -4000 }
file_input:
  offsets: /var/lib/offsets.yaml
  limit: 100
`;
    const config = parseConfig(text, 'config.yaml');
    expect(config.server.listen.port).toBe(2221);
    expect(config.server.corsOrigin).toEqual(['*']);
    expect(config.storage).toEqual(defaultConfig.storage);
    expect(config.notes).toHaveLength(2);
    expect(config.notes[0]).toContain('storage.sqlite is ignored');
    expect(config.notes[1]).toContain('file_input.offsets is ignored');
  });

  test.each([
    ['server:\n  lissten: x\n', ':2:3: unknown key "lissten" (did you mean "listen"?)'],
    ['server:\n  port: 8080\n', ':2:3: unknown key "port" (did you mean "listen"?)'],
    ['storage:\n  port: 8080\n', ':2:3: unknown key "port": '],
    ['server:\n  constructor: 1\n', ':2:3: unknown key "constructor": '],
    ['server:\n  listen: "2111"\n', ':2:11: listen must be an address and a port such as 127.0.0.1:2111'],
    ['server:\n  listen: a:70000\n', ':2:11: listen must be'],
    [
      'server:\n  hosts: "logs:2111"\n',
      ':2:10: hosts must be names such as logs.example.com, without a port',
    ],
    ['server:\n  client_timeout: soon\n', ':2:19: client_timeout must be'],
    ['server:\n  timezone: Mars/Base\n', ':2:13: unknown time zone "Mars/Base"'],
    ['server:\n  cors: "*"\n', ':2:9: cors must be a mapping with origin, not "*"'],
    ['server:\n  cors: { origin: example.com }\n', ':2:19: origin must be "*" or origins such as'],
    ['server:\n  limit_max: 0\n', ':2:14: limit_max must be a whole number from 1'],
    ['server:\n  limit_max: 1.5\n', ':2:14: limit_max must be a whole number'],
    ['server:\n  query_timeout: 0\n', ':2:18: query_timeout must be a duration'],
    ['server:\n  trusted_proxies: 10.0.0.0/40\n', ':2:20: trusted_proxies: expected an address'],
    ['file_input:\n  limit: -1\n', ':2:10: limit must be a whole number from 0'],
    ['file_input:\n  flush: soon\n', ':2:10: flush must be a duration'],
    ['storage:\n  path: ""\n', ':2:9: path must name a folder'],
    ['storage:\n  zstd_after: soon\n', ':2:15: zstd_after must be never, or a duration'],
    ['storage:\n  cache: much\n', ':2:10: cache must be a size'],
    ['s3:\n  endpoint: minio:9000\n', ':2:13: endpoint must be an address such as http://minio:9000'],
    ['s3:\n  bucket: a\n', ':2:3: unknown key "bucket"'],
    ['agents: []\n', ':1:1: unknown key "agents": the file has server, storage, s3, file_input and watch'],
    ['server: [', 'this is not valid YAML'],
  ])('%j: %s', (text, expected) => {
    expect(problemsOf(text)).toContain(`config.yaml`);
    expect(problemsOf(text)).toContain(expected);
  });

  test('may leave old segments without recompression', () => {
    const { storage } = parseConfig('storage: { zstd_after: never }', 'config.yaml');
    expect(storage.zstdAfterMs).toBeNull();
    expect(parseConfig('storage: { zstd_after: 0 }', 'config.yaml').storage.zstdAfterMs).toBe(0);
  });

  test('is read from a file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-config-'));
    try {
      writeFileSync(join(folder, 'config.yaml'), 'storage: { path: d }');
      expect(readConfig(join(folder, 'config.yaml')).storage.path).toBe(join(folder, 'd'));
      expect(() => readConfig(join(folder, 'none.yaml'))).toThrow(
        expect.objectContaining({ code: 'not_found' }),
      );
      expect(() => readConfig(folder)).toThrow(expect.objectContaining({ code: 'io' }));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('addresses to listen on', () => {
  test.each([
    ['127.0.0.1:2111', { host: '127.0.0.1', port: 2111 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:2111', { host: '::1', port: 2111 }],
    ['[fe80::1%eth0]:80', { host: 'fe80::1%eth0', port: 80 }],
  ])('%s', (text, expected) => {
    expect(parseListen(text)).toEqual(expected);
  });

  test('without a host stand for every address', () => {
    for (const text of [':2111', '*:2111']) {
      expect(parseListen(text)).toEqual({
        host: expect.stringMatching(/^(?:::|0\.0\.0\.0)$/) as string,
        port: 2111,
      });
    }
  });

  test.each(['', '2111', 'a', 'a:', 'a:b', '::1:2111', 'http://a:1', 'a:65536', 'a b:1'])(
    '%j is none',
    (text) => {
      expect(parseListen(text)).toBeUndefined();
    },
  );
});
