import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import type { DuckDbModule } from '../../bench/sides/duckdb.js';
import { importPeer } from '../../bench/sides/peer-package.js';
import { root } from '../tidy/source-files.js';

const script = join(root, 'dist/bench/run.js');
const run = promisify(execFile);

/** The columns of ClickBench's hits.parquet by type: https://github.com/ClickHouse/ClickBench. Its texts are bytes without a type. */
const hitsColumns = {
  BIGINT: 'WatchID EventTime UserID ClientEventTime FUniqID LocalEventTime ParamPrice RefererHash URLHash',
  INTEGER:
    'CounterID ClientIP RegionID RefererRegionID URLRegionID IPNetworkID SilverlightVersion3 CodeVersion HID RemoteIP WindowName OpenerName ' +
    'SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming CLID',
  USMALLINT: 'EventDate',
  SMALLINT:
    'JavaEnable GoodEvent CounterClass OS UserAgent IsRefresh RefererCategoryID URLCategoryID ResolutionWidth ResolutionHeight ' +
    'ResolutionDepth FlashMajor FlashMinor NetMajor NetMinor UserAgentMajor CookieEnable JavascriptEnable IsMobile MobilePhone TraficSourceID ' +
    'SearchEngineID AdvEngineID IsArtifical WindowClientWidth WindowClientHeight ClientTimeZone SilverlightVersion1 SilverlightVersion2 ' +
    'SilverlightVersion4 IsLink IsDownload IsNotBounce IsOldCounter IsEvent IsParameter DontCountHits WithHash Age Sex Income Interests ' +
    'Robotness HistoryLength HTTPError SocialSourceNetworkID ParamCurrencyID HasGCLID',
  BLOB:
    'Title URL Referer FlashMinor2 UserAgentMinor MobilePhoneModel Params SearchPhrase PageCharset OriginalURL HitColor BrowserLanguage ' +
    'BrowserCountry SocialNetwork SocialAction SocialSourcePage ParamOrderID ParamCurrency OpenstatServiceName OpenstatCampaignID ' +
    'OpenstatAdID OpenstatSourceID UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag',
};

/** What is more than a hash of the row. */
const hitsValues: Readonly<Record<string, string>> = {
  EventTime: '1373760000 + i * 61',
  CounterID: '60 + i % 4',
  UserID: '435090932899640449 + i % 300',
  IsRefresh: 'i % 3',
  DontCountHits: 'i % 2',
  AdvEngineID: 'i % 5',
  URL: "'https://' || CASE WHEN i % 7 = 0 THEN 'google' ELSE 'example' END || '.org/' || i % 40",
  SearchPhrase: "CASE WHEN i % 2 = 0 THEN '' ELSE 'дом ' || i % 30 END",
};

async function bench(option: string, file: string, folder: string): Promise<readonly string[]> {
  const out = join(folder, 'result');
  const { stdout } = await run(process.execPath, [script, option, file, '--tiny', '--out', out], {
    env: { ...process.env, TMPDIR: folder },
  });
  const { lines } = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as {
    lines: readonly { what: string; side: string; figure: string }[];
  };
  for (const { figure } of lines) {
    expect(stdout).toContain(figure);
    expect(figure).toMatch(/^[\d.]+ (ms, first|s, )/);
  }
  return lines.map(({ what, side }) => `${what}, ${side}`);
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-datasets-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it("asks ClickBench's questions of a small file of the same columns, with answers like DuckDB's", async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'hits.parquet');
  const columns = Object.entries(hitsColumns).flatMap(([type, names]) =>
    names.split(' ').map((name) => {
      const usual = type === 'BLOB' ? "'t' || hash(i) % 50" : 'i % 97';
      const value = hitsValues[name] ?? usual;
      return type === 'BLOB' ? `encode(${value}) AS ${name}` : `(${value})::${type} AS ${name}`;
    }),
  );
  expect(columns).toHaveLength(105);
  const { DuckDBInstance } = await importPeer<DuckDbModule>('duckdb', '@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:', {});
  const connection = await instance.connect();
  await connection.run(
    `COPY (SELECT ${columns.join(', ')} FROM range(3000) AS t(i)) TO '${file}' (FORMAT parquet)`,
  );
  connection.closeSync();
  instance.closeSync();

  const lines = await bench('--clickbench', file, folder);
  expect(lines).toHaveLength(3 + 10 * 4);
  expect(lines).toContain('19 one user, Logstrata, in place');
});

it("asks JSONBench's questions of a small file of the same keys, with answers like DuckDB's", async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'events.json');
  const collections = ['app.bsky.feed.post', 'app.bsky.feed.like', 'app.bsky.graph.follow'];
  const events = Array.from({ length: 2000 }, (_, i) => ({
    did: `did:plc:${i % 90}`,
    time_us: 1732206349000000 + i * 7_000_000,
    kind: i % 50 === 0 ? 'identity' : 'commit',
    ...(i % 50 === 0
      ? { identity: { did: `did:plc:${i % 90}`, seq: i } }
      : {
          commit: {
            rev: `r${i}`,
            operation: i % 9 === 0 ? 'delete' : 'create',
            collection: collections[i % 7 === 0 ? 1 : i % 3],
            rkey: `k${i}`,
            record: { $type: 'post', text: `дом ${i}` },
          },
        }),
  }));
  writeFileSync(file, events.map((event) => `${JSON.stringify(event)}\n`).join(''));

  const lines = await bench('--jsonbench', file, folder);
  expect(lines).toHaveLength(2 + 5 * 3);
});

it('names the option that is missing, and a file that is not there', async () => {
  const failure = async (...args: string[]): Promise<string> =>
    run(process.execPath, [script, ...args]).then(
      () => 'no failure',
      (error: { code: number; stderr: string }) => `${error.code} ${error.stderr.split('\n')[0]!}`,
    );
  expect(await failure('datasets')).toBe('2 bench: one of --clickbench FILE and --jsonbench FILE is needed');
  expect(await failure('--clickbench', '/nowhere/hits.parquet')).toBe(
    '2 bench: --clickbench: /nowhere/hits.parquet is not there',
  );
});
