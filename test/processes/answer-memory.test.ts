import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { fetchAlone, freePort, run, start, workFolder } from '../cli/process.js';

const records = 32_000;
const answersAtOnce = 63;
const agentFile = `fields:
  - name: time
    type: time
  - name: message
file:
  path: 'logs/.*'
  format: json
`;

/** 20 MB: more than the kernel buffers for a client plus what the server writes in advance. */
function log(): string {
  const text = 'a client took its time with a long answer, and others waited for theirs; '.repeat(8);
  let lines = '';
  for (let n = 0; n < records; n++) lines += `{"time":${1_767_225_600_000 + n},"message":"${n} ${text}"}\n`;
  return lines;
}

/** The peak memory of a process in megabytes. */
function peakMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)![1]) / 1024;
}

/** Requests all records. Resolves when the answer begins; its body is read only on demand. */
function ask(port: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = get({ port, path: `/api/query/app?limit=${records}`, agent: false }, resolve);
    asked.on('error', reject);
    onTestFinished(() => void asked.destroy());
  });
}

/** The hash of an answer; fails if the answer is broken off. */
async function hashOf(answer: IncomingMessage): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of answer) hash.update(piece as Buffer);
  return hash.digest('hex');
}

it('the memory of all answers together is bounded, however many clients read slowly', async () => {
  const folder = workFolder();
  writeFileSync(join(folder, 'agents/app.yaml'), agentFile);
  expect(await run(folder, ['load', 'app', '-'], log())).toMatchObject({ code: 0 });
  const port = await freePort();
  const args = ['--listen', `127.0.0.1:${port}`, '--no-follow', '--cache', '64mb', '--workers', '2'];
  const server = start(folder, ['serve', ...args]);
  await server.shows('serving ');
  const answers = await Promise.all(Array.from({ length: answersAtOnce }, () => ask(port)));
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  // Clients that do not read delay nobody else, …
  const short = await fetchAlone(`http://127.0.0.1:${port}/api/query/app?limit=3`);
  expect([short.status, (await short.text()).split('\n').length]).toEqual([200, 4]);
  // … and get their complete answers once they read on.
  const hashes = await Promise.all(answers.slice(0, 12).map(hashOf));
  expect(new Set(hashes)).toEqual(new Set([await hashOf(await ask(port))]));
  expect(peakMegabytes(server.child.pid!)).toBeLessThan(400);
}, 240_000);
