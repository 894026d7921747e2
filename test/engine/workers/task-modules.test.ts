import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root, sourceFiles } from '../../tidy/source-files.js';

it('every module that names itself as a task is one of those that are installed for threads', () => {
  const named = sourceFiles(['engine', 'agents', 'server'])
    .filter(({ path, text }) => !path.includes('/workers/') && text.includes('taskIn(import.meta.url'))
    .map(({ path, text }) => ({
      path: path.replace(/\.ts$/, '.js'),
      names: [...text.matchAll(/taskIn\(import\.meta\.url, \{ (\w+) \}/g)].map(([, name]) => name!),
    }));
  expect(named.length).toBeGreaterThan(10);
  const program = join(root, 'dist/program');
  const missing = named.filter(({ path, names }) => {
    const text = existsSync(join(program, path)) ? readFileSync(join(program, path), 'utf8') : '';
    const exported = /export \{(.*?)\}/s.exec(text)?.[1] ?? '';
    return names.some((name) => !new RegExp(`\\b${name}\\b`).test(exported));
  });
  expect(missing).toEqual([]);
});
