import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../tidy/source-files.js';

it('a build succeeds beside modules that an earlier one has left, and installs none of them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-rebuild-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'server'));
  cpSync(join(root, 'server/build.mjs'), join(folder, 'server/build.mjs'));
  for (const name of ['agents', 'engine', 'node_modules', 'package.json'])
    symlinkSync(join(root, name), join(folder, name));
  for (const name of ['agents', 'engine', 'server', 'viewer'])
    cpSync(join(root, 'dist', name), join(folder, 'dist', name), { recursive: true });
  const task = 'export { gone } from "./terms/limits.js"; taskIn(import.meta.url, {});';
  writeFileSync(join(folder, 'dist/engine', 'earlier-task.js'), task);
  execFileSync(process.execPath, [join(folder, 'server/build.mjs')]);
  expect(existsSync(join(folder, 'dist/program/engine', 'earlier-task.js'))).toBe(false);
  expect(existsSync(join(folder, 'dist/program/engine/store/reading/chunk-tasks.js'))).toBe(true);
});
