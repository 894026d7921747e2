import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root, sourceFiles } from '../../tidy/source-files.js';

it('every module that names itself as a task is one of those that are installed for threads', () => {
  const named = sourceFiles(['engine', 'agents', 'server'])
    .filter(({ path, text }) => !path.includes('/workers/') && text.includes('builtModule(import.meta.url)'))
    .map(({ path }) => path.replace(/\.ts$/, '.js'));
  expect(named.length).toBeGreaterThan(10);
  const program = join(root, 'dist/program');
  const missing = named.filter(
    (path) => !existsSync(join(program, path)) || !readFileSync(join(program, path), 'utf8').includes('work'),
  );
  expect(missing).toEqual([]);
});
