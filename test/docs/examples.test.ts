import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAgentFile, readAgents } from '../../agents/definition/agent-file.js';
import { parseConfig } from '../../agents/definition/config-file.js';
import { defaultConfig } from '../../agents/definition/config.js';
import { describeLine } from '../../agents/decode/describe-line.js';
import { loadFiles } from '../../agents/load/load.js';
import { openArchive } from '../../engine/index.js';
import { objectCacheBytesDefault } from '../../engine/core/limits.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Archive } from '../../engine/archive/archive.js';
import { makeRoutes } from '../../server/console/routes.js';
import { startConsole, type RunningConsole } from '../../server/console/console.js';
import { sampleLogs } from '../../server/cli/demo.js';
import { startServer, type RunningServer } from '../../server/route/server.js';
import { fetchAlone } from '../cli/process.js';
import { root } from '../tidy/source-files.js';
import { documentation, fencesOf } from './pages.js';

/** Checks that the requests, answers, agent files and configurations on the pages are correct. */

const nowMs = Date.UTC(2026, 10, 21);
const pages = documentation();
const fences = pages.flatMap(fencesOf);

let folder = '';
let archive: Archive;
let server: RunningServer;
let operators: RunningConsole;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'logstrata-docs-'));
  archive = await openArchive(folder, { mode: 'write', role: 'test', now: () => nowMs });
  const stores = new Map<string, AgentStore>();
  // A clone may have the user's own agents there.
  const { agents } = readAgents(join(root, 'agents'));
  for (const { agent, path } of sampleLogs()) {
    const definition = agents.find(({ name }) => name === agent)!;
    const store = await archive.agent(agent, definition.schema);
    const files = [path];
    const { records } = await loadFiles({ store, definition, files, timezone: 'UTC', now: () => nowMs });
    expect(records).toBeGreaterThan(0);
    stores.set(definition.name, store);
  }
  server = await startServer({
    ...defaultConfig.server,
    listen: { host: '127.0.0.1', port: 0 },
    transport: 'node',
    lookup: (name) => stores.get(name),
    now: () => nowMs,
    log: () => {},
  });
  operators = await startConsole({
    address: { host: '127.0.0.1', port: 0 },
    hosts: [],
    clientTimeoutMs: 10_000,
    log: () => {},
  });
  const served = new Map(
    [...stores].map(([name, store]) => {
      const definition = agents.find((agent) => agent.name === name)!;
      return [name, { definition, store }];
    }),
  );
  const counts = { timezone: 'UTC', queryTimeoutMs: 10_000, now: () => nowMs };
  const { route, admission } = server;
  const figures = (): Promise<never> => Promise.reject(new Error('no page asks for metrics'));
  operators.open(makeRoutes({ version: '1', agents: served, route, admission, counts, figures }), () =>
    Promise.resolve([]),
  );
});

afterAll(async () => {
  await server.close({ timeoutMs: 0 });
  await operators.close({ timeoutMs: 0 });
  await archive.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Example {
  readonly where: string;
  readonly target: string;
  /** The answer is cut to this many characters per line. */
  readonly columns: number | undefined;
  readonly answer: readonly string[];
}

/** Every `$ curl '…'` of the pages, with the lines after it. */
function examples(): Example[] {
  return fences.flatMap(({ page, line, lines }) =>
    lines.flatMap((text, i): Example[] => {
      const match = /^\$ curl (?:-\S+ )*'http:\/\/127\.0\.0\.1:2111([^']*)'(?: \| cut -c1-(\d+))?/.exec(text);
      if (match === null) return [];
      const rest = lines.slice(i + 1);
      const next = rest.findIndex((other) => other.startsWith('$ '));
      const answer = (next < 0 ? rest : rest.slice(0, next)).filter((other) => other.startsWith('{'));
      const columns = match[2] === undefined ? undefined : Number(match[2]);
      return [{ where: `${page.path}:${line + i}`, target: match[1]!, columns, answer }];
    }),
  );
}

describe('counts in the documentation', () => {
  it('have the answers that are shown', async () => {
    const fence = fences.filter(({ page }) => page.path === 'docs/counts.md').flatMap(({ lines }) => lines);
    const asked = fence.flatMap((text, i) => {
      const match = /^\$ curl 'http:\/\/127\.0\.0\.1:2112([^']*)'/.exec(text);
      return match === null ? [] : [{ target: match[1]!, answer: fence.slice(i + 1) }];
    });
    expect(asked.length).toBe(4);
    for (const { target, answer } of asked) {
      const response = await fetchAlone(operators.address + target);
      const lines = (await response.text()).trimEnd().split(/\r?\n/);
      expect(answer.slice(0, lines.length)).toEqual(lines);
    }
  });
});

describe('requests in the documentation', () => {
  it('have the answers that are shown', async () => {
    const shown = examples();
    expect(shown.length).toBeGreaterThan(12);
    expect(shown.filter(({ answer }) => answer.length > 0).length).toBeGreaterThan(5);
    for (const { where, target, columns, answer } of shown) {
      // An agent that the reader is to create does not exist here.
      if (target.includes('/mysite?')) continue;
      const response = await fetchAlone(server.address + target);
      const lines = (await response.text()).split('\n').filter((text) => text !== '');
      if (answer.length > 0) {
        expect({ where, answer: lines.map((text) => text.slice(0, columns)) }).toEqual({ where, answer });
      } else {
        expect({ where, status: response.status }).toEqual({ where, status: 200 });
      }
    }
  });

  it('have records as their answer, except where the page says that they have none', async () => {
    const empty: string[] = [];
    for (const { target } of examples()) {
      if (target.includes('/mysite?')) continue;
      const response = await fetchAlone(server.address + target);
      if ((await response.text()) === '') empty.push(target);
    }
    expect(empty).toEqual([
      '/api/query/nginx?after=079bd7000000006f',
      '/api/query/nginx?path__like=nowhere-to-be-found',
    ]);
  });
});

describe("agents' files in the documentation", () => {
  const yaml = fences.filter(({ language, lines }) => language === 'yaml' && lines.includes('file:'));

  it('are valid', () => {
    expect(yaml.length).toBeGreaterThanOrEqual(4);
    for (const { page, line, lines } of yaml) {
      const path = `${page.path}-${line}.yaml`.replaceAll('/', '-');
      expect(parseAgentFile(lines.join('\n'), path).fields.length).toBeGreaterThan(1);
    }
  });

  it('turn the shown line into the shown record', () => {
    const page = pages.find(({ path }) => path === 'docs/agent-file.md')!;
    const definition = parseAgentFile(fencesOf(page)[1]!.lines.join('\n'), 'shop.yaml');
    const [, line, fileName] = /The line `([^`]*)` of `([^`]*)` becomes/.exec(page.text)!;
    const shown = fencesOf(page).find(({ language }) => language === 'json')!.lines[0]!;
    const described = describeLine(definition, line!, { timezone: 'UTC', now: () => nowMs, fileName });
    expect(described.outcome).toBe('record');
    if (described.outcome !== 'record') return;
    const record = described.fields.map(({ name, value }) => {
      const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value);
      return `"${name}":${text}`;
    });
    expect(shown).toMatch(/^\{"_cursor":"[0-9a-f]{16}",/);
    expect(shown.slice(shown.indexOf(',') + 1)).toBe(`${record.join(',')}}`);
  });

  it('are explained key by key', () => {
    const page = pages.find(({ path }) => path === 'docs/agent-file.md')!;
    const keys = ['name', 'type', 'source', 'timestamp', 'template', 'index', 'description', 'path'];
    for (const key of [...keys, 'format', 'regex', 'rotate', 'retention.period', 'retention.interval']) {
      expect(page.text).toContain(`\`${key}\``);
    }
  });
});

describe('configuration in the documentation', () => {
  it('has the defaults that the page states', () => {
    const page = pages.find(({ path }) => path === 'docs/configuration.md')!;
    const { lines } = fencesOf(page).find(({ language }) => language === 'yaml')!;
    const config = parseConfig(lines.join('\n'), '/srv/config.yaml');
    expect(config).toEqual({
      ...defaultConfig,
      server: {
        ...defaultConfig.server,
        console: { host: '127.0.0.1', port: 2112, isAsked: true },
        corsOrigin: ['https://logs.example.com'],
        hosts: ['logs.example.com'],
        trustedProxies: ['10.0.0.0/8'],
      },
      storage: { path: '/srv/data/store', zstdAfterMs: 7 * 86_400_000, cacheBytes: null, far: null },
      s3: {
        endpoint: 'http://minio:9000',
        region: 'eu-north-1',
        profile: 'logs',
        pathStyle: true,
        cacheBytes: objectCacheBytesDefault,
      },
    });
  });
});

it('nothing in the documentation names the machine on which it was written', () => {
  const texts = pages
    .filter(({ text }) => /\/(?:root|home|Users)\/|\/tmp\//.test(text))
    .map(({ path }) => path);
  expect(texts).toEqual([]);
});
