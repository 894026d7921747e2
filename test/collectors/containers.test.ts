import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { contentOf, criLine, dockerLine, modelRecords, writtenOf } from '../agents/decode/container-model.js';
import { caseCount, fc, seed } from '../cases.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import { follow, type FollowedFolder, range } from './followed-folder.js';

const numRuns = caseCount(20, 300);

/** The settings of an agent whose texts become records as they are, as its file says them. */
function settings(format: string, more = '') {
  const text = `fields:
  - { name: time, timestamp: { format: rfc3339 }, source: container.time }
  - { name: n, type: int, source: none }
  - { name: text, source: container.text }
  - { name: host, source: container.stream }
file: { path: '/logs/(?P<none>[a-z]*)\\.log', format: ${format}${more} }`;
  const { fields, file } = parseAgentFile(text, 'agents/app.yaml');
  const { directory: _, ...lines } = file!;
  return { fields, file: { ...lines, namePattern: '[a-z]+\\.log' } };
}

async function found(followed: FollowedFolder): Promise<string[]> {
  return (await followed.records()).map(({ host, text }) => `${host} ${text}`);
}

const multiline = ", multiline: { start: '^\\d\\d ', max_lines: 4, max_bytes: 600b }";
const formats = [
  ['docker', '', dockerLine, undefined],
  ['cri', '', criLine, undefined],
  ['docker', multiline, dockerLine, { start: '^\\d\\d ', linesMax: 4, bytesMax: 600 }],
  ['cri', multiline, criLine, { start: '^\\d\\d ', linesMax: 4, bytesMax: 600 }],
] as const;

describe.each(formats)('logs of containers, %s%s', (format, more, write, rules) => {
  const { fields, file } = settings(format, more);
  const options = { fields, file };

  it(`give the same when they are loaded, and when they are followed through crashes as they grow (seed ${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(writtenOf, fc.array(fc.nat(), { maxLength: 6 }), async (written, cuts) => {
        const content = contentOf(written, write, false);
        const { records } = modelRecords(written, write, rules);
        const filled = records.filter(({ text }) => text !== '');
        const expected = filled.map(({ stream, text }) => `${stream} ${text}`).sort();
        fc.pre(expected.length > 0);
        const followed = await follow(options);
        const path = followed.path('web.log');
        const places = cuts.map((cut) => cut % content.length).sort((a, b) => a - b);
        let from = 0;
        for (const to of [...places, content.length]) {
          appendFileSync(path, content.subarray(from, to));
          from = to;
          await followed.collect();
          await followed.crash();
          await followed.start();
        }
        renameSync(path, `${path}.1`);
        await followed.settle();
        expect((await found(followed)).sort()).toEqual(expected);
        for (const bytes of [content, gzipSync(content)]) {
          const loaded = await follow(options);
          writeFileSync(loaded.path('web.log'), bytes);
          expect(await loaded.load('web.log')).toMatchObject({ exitCode: 0 });
          expect((await found(loaded)).sort()).toEqual(expected);
          await loaded.settle();
          expect((await found(loaded)).sort()).toEqual(expected);
        }
      }),
      { numRuns, seed },
    );
  });
});

describe('a part of a line', () => {
  const part = (text: string, isPartial: boolean, stream: 'stdout' | 'stderr' = 'stdout') =>
    `${criLine({ stream, text, isPartial, ms: 0 })}\n`;

  it('waits for its end, with what comes behind it, also over restarts at each line', async () => {
    const followed = await follow(settings('cri'));
    const path = followed.path('web.log');
    const lines = [part('a', true), part('x', false, 'stderr'), part('b', true), part('c', false)];
    for (const line of lines) {
      expect(await found(followed)).toEqual([]);
      appendFileSync(path, line);
      await followed.collect();
      await followed.crash();
      await followed.start();
      await followed.collect();
    }
    expect(await found(followed)).toEqual(['stdout abc', 'stderr x']);
  });

  it('is a record after a pause, and so is its end in the next file', async () => {
    const followed = await follow(settings('cri'));
    const path = followed.path('web.log');
    writeFileSync(path, part('a', true) + part('x', false, 'stderr'));
    await followed.collect();
    expect(await found(followed)).toEqual([]);
    expect(followed.collector.recordDueInMs).toBeGreaterThan(0);
    renameSync(path, `${path}.1`);
    writeFileSync(path, part('b', false));
    await followed.collect();
    expect(await found(followed)).toEqual(['stdout b']);
    followed.pass(1000);
    expect(followed.collector.recordDueInMs).toBeLessThanOrEqual(0);
    await followed.collect();
    expect(await found(followed)).toEqual(['stdout b', 'stdout a', 'stderr x']);
  });

  it('is read at the end of a file that is loaded', async () => {
    const loaded = await follow(settings('docker'));
    for (const [name, end] of [
      ['a', ''],
      ['b', '\n'],
    ] as const) {
      const line = dockerLine({ stream: 'stdout', text: `half ${name}`, isPartial: true, ms: 0 });
      writeFileSync(loaded.path(`${name}.log`), line + end);
      await loaded.load(`${name}.log`);
    }
    expect(await found(loaded)).toEqual(['stdout half a', 'stdout half b']);
  });

  it('belongs to a record that is found again where a log has lost its beginning', async () => {
    const linesOf = (from: number, to: number): string =>
      range(from, to)
        .map((n) => {
          const ms = 2000 * n;
          const first = criLine({ stream: 'stdout', text: `${n} so`, isPartial: true, ms });
          return `${first}\n${criLine({ stream: 'stdout', text: 'me', isPartial: false, ms: ms + 1 })}\n`;
        })
        .join('');
    const followed = await follow(settings('cri'));
    const path = followed.path('web.log');
    writeFileSync(path, linesOf(0, 100));
    await followed.settle();
    await followed.stop();
    writeFileSync(path, linesOf(50, 110));
    await followed.start();
    await followed.settle();
    expect(await found(followed)).toEqual(range(0, 110).map((n) => `stdout ${n} some`));
  });
});
