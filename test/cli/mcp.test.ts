import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run } from './here.js';
import { main, recordsOf, start, workFolder } from './process.js';
import { anyPorts } from './serving.js';

interface Answer {
  readonly texts: readonly string[];
  readonly isError: boolean;
}

/** A client of the protocol, and the process that it has started in a folder. */
class Asking {
  readonly #client = new Client({ name: 'a test', version: '1' });
  readonly #transport: StdioClientTransport;
  stderr = '';

  constructor(folder: string, words: readonly string[] = []) {
    this.#transport = new StdioClientTransport({
      command: process.execPath,
      args: [main, 'mcp', ...words],
      cwd: folder,
      stderr: 'pipe',
    });
    this.#transport.stderr?.on('data', (text: Buffer) => (this.stderr += text.toString()));
    onTestFinished(() => this.#client.close());
  }

  async connect(): Promise<this> {
    await this.#client.connect(this.#transport);
    return this;
  }

  async tools(): Promise<string[]> {
    return (await this.#client.listTools()).tools.map(({ name }) => name);
  }

  async call(name: string, given: Record<string, unknown> = {}): Promise<Answer> {
    const { content, isError = false } = await this.#client.callTool({ name, arguments: given });
    return { texts: content.map((part) => ('text' in part ? String(part.text) : '')), isError };
  }

  /** The records of an answer, and what is said about them. */
  async records(name: string, given: Record<string, unknown>): Promise<[Record<string, unknown>[], string]> {
    const { texts, isError } = await this.call(name, given);
    expect(isError, texts.join('\n')).toBe(false);
    return [recordsOf(texts.filter((_, i) => i % 2 === 0).join('\n')), texts.at(-1)!];
  }
}

async function loaded(): Promise<string> {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
  return folder;
}

describe('logstrata mcp', () => {
  it('lists agents, fields and operators, and gives the records and counts of the other commands', async () => {
    const folder = await loaded();
    const asking = await new Asking(folder).connect();
    expect(await asking.tools()).toEqual([
      'list_agents',
      'describe_agent',
      'query_logs',
      'count_logs',
      'logs_around',
    ]);
    const listed = await asking.call('list_agents');
    expect(recordsOf(listed.texts[0]!)).toMatchObject([
      { name: 'app', records: 2000, first: '2026-11-17 00:03:05 UTC' },
      { name: 'nginx', records: 10_000 },
    ]);
    expect(recordsOf((await asking.call('list_agents', { contains: 'ng' })).texts[0]!)).toHaveLength(1);
    const [about, fields] = (await asking.call('describe_agent', { agent: 'app' })).texts;
    expect(JSON.parse(about!)).toMatchObject({
      records: 2000,
      operators: { float: expect.stringMatching(/^eq ne gt/) },
    });
    expect(recordsOf(fields!)).toContainEqual(expect.objectContaining({ name: 'duration', type: 'float' }));
    const words = ['level__exact=error', 'space'];
    const expected = recordsOf((await run(folder, ['query', 'app', ...words])).stdout);
    const [records, note] = await asking.records('query_logs', { agent: 'app', filters: words });
    expect(records).toEqual(expected);
    expect(note).toContain(
      `${expected.length} records; there are no earlier ones. Earlier: before=${String(expected[0]!._cursor)}`,
    );
    const numbers = await asking.call('count_logs', {
      agent: 'nginx',
      by: ['status'],
      top: 1,
      of: ['bytes'],
      fn: ['avg', 'max'],
    });
    expect(JSON.parse(numbers.texts[0]!)).toMatchObject({
      values: { top: [{ of: { bytes: { avg: expect.any(Number) } } }] },
    });
    const counted = await asking.call('count_logs', {
      agent: 'nginx',
      by: ['time:1d', 'status'],
      top: 2,
      since: '2026-11-18',
    });
    const count = [
      'count',
      'nginx',
      'time__since=2026-11-18',
      '--by',
      'time:1d',
      '--by',
      'status',
      '--top',
      '2',
      '--json',
    ];
    expect(counted.texts[0]).toBe((await run(folder, count)).stdout);
  });

  it('pages both ways and shows the neighbours of a record, whatever the filters', async () => {
    const folder = await loaded();
    const asking = await new Asking(folder).connect();
    const all = recordsOf((await run(folder, ['query', 'app', '-n', '2000', 'level__exact=error'])).stdout);
    const seen: Record<string, unknown>[] = [];
    let before: string | undefined;
    do {
      const given = {
        agent: 'app',
        filters: ['level__exact=error'],
        limit: 40,
        ...(before === undefined ? {} : { before }),
      };
      const [records, note] = await asking.records('query_logs', given);
      seen.unshift(...records);
      before = note.includes('no earlier') ? undefined : /before=([0-9a-f]{16})/.exec(note)![1];
    } while (before !== undefined);
    expect(seen).toEqual(all);
    const cursor = String(all[5]!._cursor);
    const lines = recordsOf((await run(folder, ['query', 'app', '-n', '2000'])).stdout);
    const at = lines.findIndex(({ _cursor }) => _cursor === cursor);
    const given = { agent: 'app', cursor, records_before: 3, records_after: 2 };
    expect((await asking.records('logs_around', given))[0]).toEqual(lines.slice(at - 3, at + 3));
    const ends = await asking.call('logs_around', {
      agent: 'app',
      cursor: String(lines[0]!._cursor),
      records_after: 0,
    });
    expect(ends.texts[0]).toBe('no record');
    expect(recordsOf(ends.texts[1]!)).toEqual(lines.slice(0, 1));
  });

  it('reads several agents under one cursor', async () => {
    const folder = await loaded();
    const asking = await new Asking(folder).connect();
    const words = ['--since', '2026-11-18', '-n', '60'];
    const expected = recordsOf((await run(folder, ['query', 'nginx,app', ...words])).stdout);
    const given = { agent: 'nginx,app', since: '2026-11-18', limit: 30 };
    const [later, note] = await asking.records('query_logs', given);
    const before = /before=([0-9a-f.]+);/.exec(note)![1];
    const [earlier] = await asking.records('query_logs', { ...given, before });
    expect([...earlier, ...later]).toEqual(expected);
    const counted = await asking.call('count_logs', {
      agent: 'nginx,app',
      since: '2026-11-18',
      filters: ['order'],
    });
    const count = ['count', 'nginx,app', 'order', '--since', '2026-11-18', '--json'];
    expect(counted.texts[0]).toBe((await run(folder, count)).stdout);
    const record = expected.find(({ _agent }) => _agent === 'app')!;
    const around = {
      agent: 'nginx,app',
      cursor: String(record['_cursor']),
      records_before: 0,
      records_after: 1,
    };
    const { texts } = await asking.call('logs_around', around);
    expect(recordsOf(texts[1]!)).toMatchObject([
      { message: record['message'] },
      { level: expect.any(String) },
    ]);
  });

  it('bounds answers, says what was left out, and goes on from there', async () => {
    const folder = workFolder();
    const agent =
      'fields: [{ name: n, type: int }, { name: text }]\nfile: { path: "../logs/big", format: json }\n';
    writeFileSync(join(folder, 'agents/big.yaml'), agent);
    const lines = Array.from({ length: 300 }, (_, n) =>
      JSON.stringify({ n, text: `${'\\"ü😀'.repeat(100)} ${n}` }),
    );
    lines.push(
      JSON.stringify({ n: 9_007_199_254_740_993n.toString(), text: 'x'.repeat(100_000) }).replace(
        /"(\d+)"/,
        '$1',
      ),
    );
    await run(folder, ['load', 'big', '-'], lines.join('\n'));
    const asking = await new Asking(folder).connect();
    const walk = async (given: Record<string, unknown>, next: 'after' | 'before'): Promise<number[]> => {
      const seen: number[] = [];
      for (let place = {}; ;) {
        const { texts } = await asking.call('query_logs', { agent: 'big', limit: 500, ...given, ...place });
        expect(Buffer.byteLength(texts.join('\n'))).toBeLessThan(51_000);
        const found = recordsOf(texts[0]!).map(({ n }) => Number(n));
        if (next === 'after') seen.push(...found);
        else seen.unshift(...found);
        if (texts[1]!.includes('there are no')) return seen;
        expect(texts[1]).toContain('further ones were left out');
        place = { [next]: new RegExp(`${next}=(\\w+)`).exec(texts[1]!)![1] };
      }
    };
    const numbers = [...Array.from({ length: 300 }, (_, n) => n), Number(9_007_199_254_740_993n)];
    expect(await walk({ after: '0000000000000000' }, 'after')).toEqual(numbers);
    expect(await walk({}, 'before')).toEqual(numbers);
    const [last] = (await asking.call('query_logs', { agent: 'big', limit: 1 })).texts;
    expect(last).toContain('"n":9007199254740993,');
    expect(last).toContain('… (98000 more characters)"');
  });

  it('answers wrong questions with what was expected, and goes on', async () => {
    const folder = await loaded();
    const asking = await new Asking(folder).connect();
    const wrong: [string, Record<string, unknown>, RegExp][] = [
      ['query_logs', { agent: 'ngin' }, /there is no agent "ngin" \(did you mean "nginx"\?\)/],
      ['query_logs', { agent: 'nginx', filters: ['status>500'] }, /Write: status__gt=500$/],
      ['query_logs', { agent: 'nginx', filters: ['status__like=5'] }, /has no operator "like"/],
      ['query_logs', { agent: 'nginx', since: 'now' }, /"time__since": "now" is not a time/],
      ['query_logs', { agent: 'nginx', after: 'x' }, /16 lowercase hexadecimal digits/],
      ['query_logs', { agent: 'nginx', limit: 501 }, /limit/],
      ['query_logs', { agent: 'nginx', fields: ['statu'] }, /unknown field "statu"/],
      ['query_logs', {}, /agent/],
      [
        'query_logs',
        { agent: 'nginx', filter: ['a'] },
        /unknown argument "filter" \(did you mean "filters"\?\)/,
      ],
      ['count_logs', { agent: 'nginx', by: ['time:1s'] }, /Ask for a larger step/],
      ['count_logs', { agent: 'nginx', by: ['time:1m'] }, /a larger step/],
      ['query_logs', { agent: 'nginx', filters: ['format=csv'] }, /leave out "format"/],
      ['logs_around', { agent: 'nginx', cursor: '0000000000000000' }, /16 lowercase hexadecimal digits/],
    ];
    for (const [tool, given, message] of wrong) {
      const { texts, isError } = await asking.call(tool, given);
      expect(texts.join('\n')).toMatch(message);
      expect(isError).toBe(true);
    }
    expect((await asking.records('query_logs', { agent: 'nginx', limit: 1 }))[0]).toHaveLength(1);
    expect(asking.stderr).toBe('');
  });

  it('sees what a running server has stored since', async () => {
    const folder = workFolder();
    mkdirSync(join(folder, 'logs'));
    rmSync(join(folder, 'agents'), { recursive: true });
    mkdirSync(join(folder, 'agents'));
    writeFileSync(
      join(folder, 'agents/live.yaml'),
      "fields: [{ name: text }]\nfile: { path: '../logs/live', format: json }\n",
    );
    const log = join(folder, 'logs/live');
    appendFileSync(log, '{"text":"one"}\n');
    const server = start(folder, ['serve', ...anyPorts]);
    await server.shows('serving ');
    const asking = await new Asking(folder).connect();
    const count = async (): Promise<number> => {
      const { texts } = await asking.call('count_logs', { agent: 'live' });
      return (JSON.parse(texts[0]!) as { count: number }).count;
    };
    await expect.poll(count, { timeout: 20_000 }).toBe(1);
    appendFileSync(log, '{"text":"two"}\n');
    await expect.poll(count, { timeout: 20_000 }).toBe(2);
  });

  it('ends with its client, and says at its start what it can not open', async () => {
    const folder = await loaded();
    const process = start(folder, ['mcp']);
    process.child.stdin.end();
    expect(await process.finished).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const nowhere = await run(folder, ['mcp', '--data', 'nowhere']);
    expect(nowhere).toMatchObject({ code: 1, stdout: '' });
    expect(nowhere.stderr).toContain('nowhere is not there');
  });
});
