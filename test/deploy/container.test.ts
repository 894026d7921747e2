import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readConfig } from '../../agents/definition/config-file.js';
import { freePort, root, start, workFolder } from '../cli/process.js';

const exec = promisify(execFile);
const containerfile = readFileSync(join(root, 'Containerfile'), 'utf8');

/** The words of its instructions, each instruction on one line. */
const instructions = containerfile
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.split(/\s+/));

const wordsOf = (name: string): string[][] =>
  instructions.filter(([word]) => word === name).map(([, ...words]) => words);

it('the image is built from existing files, and runs as its own user', () => {
  const copied = wordsOf('COPY')
    .filter(([first]) => !first!.startsWith('--'))
    .flatMap((words) => words.slice(0, -1));
  expect(copied).toContain('deploy/container.yaml');
  for (const file of copied) expect(existsSync(join(root, file)), file).toBe(true);
  const [user] = wordsOf('USER').at(-1)!;
  expect(user).toMatch(/^[1-9]\d+:[1-9]\d+$/);
  // Its start command does not run as root either.
  expect(instructions.findIndex(([name]) => name === 'USER')).toBeGreaterThan(
    instructions.findLastIndex(([name]) => name === 'RUN'),
  );
  expect(wordsOf('STOPSIGNAL')).toEqual([['SIGTERM']]);
  expect(wordsOf('VOLUME')).toEqual([['/var/lib/logstrata']]);
});

it('the configuration of the image is valid, and agrees with the image', () => {
  const { server, storage } = readConfig(join(root, 'deploy/container.yaml'));
  expect(wordsOf('ENV').flat()).toContain('LOGSTRATA_CONFIG=/etc/logstrata/config.yaml');
  expect(`${storage.path}`).toBe('/var/lib/logstrata');
  expect(wordsOf('EXPOSE')).toEqual([[String(server.listen.port)]]);
  expect(server.console).toMatchObject({ host: '127.0.0.1', port: 2112 });
});

it('the health check distinguishes a server that answers from one that does not', async () => {
  const [check] = wordsOf('HEALTHCHECK');
  const script = /deploy\/[a-z]+\.mjs/.exec(check!.join(' '))![0];
  const folder = workFolder();
  mkdirSync(join(folder, 'data/store'), { recursive: true });
  writeFileSync(join(folder, 'config.yaml'), '');
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const ask = (): Promise<number> =>
    exec(process.execPath, [join(root, script), address]).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
  expect(await ask()).toBe(1);
  const listen = ['--listen', `127.0.0.1:${await freePort()}`, '--console', `127.0.0.1:${port}`];
  const server = start(folder, ['serve', ...listen]);
  await server.shows('serving ');
  expect(await ask()).toBe(0);
  server.child.kill('SIGTERM');
  await server.finished;
  expect(await ask()).toBe(1);
});
