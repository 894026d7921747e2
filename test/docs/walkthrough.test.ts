import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { fetchAlone, freePort, main, recordsOf, root, run, start, workFolder } from '../cli/process.js';
import { fencesOf } from './pages.js';

/** The commands below a heading of README.md, as the user types them. */
function commandsBelow(heading: string): string[] {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
    .split(`\n## ${heading}\n`)[1]!
    .split('\n## ')[0]!;
  return fencesOf({ path: 'README.md', text })
    .flatMap(({ lines }) => lines)
    .flatMap((line) => (line.startsWith('$ ') ? [line.slice(2)] : []));
}

const line = (day: number, n: number): string =>
  `198.18.0.1 - - [${day}/Nov/2026:10:00:00 +0000] "GET /${n} HTTP/1.1" 500 12 "-" "curl"\n`;
const lines = (day: number, count: number): string =>
  Array.from({ length: count }, (_, n) => line(day, n)).join('');

it("the commands for the user's own logs store those logs and nothing of the samples", async () => {
  const folder = workFolder();
  const logs = join(folder, 'var/log/nginx');
  mkdirSync(logs, { recursive: true });
  writeFileSync(join(logs, 'access.log'), lines(20, 5));
  writeFileSync(join(logs, 'access.log.1'), lines(19, 3));
  writeFileSync(join(logs, 'access.log.2.gz'), gzipSync(lines(18, 2)));
  const commands = commandsBelow('Your own logs').map((command) =>
    command.replaceAll('/var/log/nginx', logs).replaceAll('npx logstrata', `'${process.execPath}' '${main}'`),
  );
  const type = (word: string): string =>
    execFileSync('sh', ['-c', commands.find((command) => command.includes(word))!], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  type(' agent new ');
  expect(readFileSync(join(folder, 'agents/mysite.yaml'), 'utf8')).toContain(`path: '${logs}/access\\.log'`);
  expect(type(' check ')).toContain('5 records, every line matches');
  expect(commands.some((command) => command.endsWith(' serve'))).toBe(true);
  const listen = `127.0.0.1:${await freePort()}`;
  const server = start(folder, ['serve', '--listen', listen]);
  await server.shows('serving ');
  type(' load ');
  const answer = await fetchAlone(`http://${listen}/api/query/mysite?status__gte=500&limit=100`);
  expect(recordsOf(await answer.text())).toHaveLength(10);
  const stats = await run(folder, ['stats', 'mysite', '--json']);
  expect(JSON.parse(stats.stdout)).toMatchObject({ records: 10 });
});
