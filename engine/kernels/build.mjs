/**
 * Compiles the AssemblyScript kernels into dist/, unless what lies there was made of the same sources by the same
 * compiler: it takes longer than all else that `npm start` does the second time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const sources = 'engine/kernels/assembly';
const output = 'dist/engine/kernels/kernels.wasm';
// Beside the output, so that whoever removes dist/ removes it too.
const fingerprintPath = join(root, `${output}.made-of`);

const require = createRequire(import.meta.url);
const compiler = require.resolve('assemblyscript/bin/asc.js');

function fingerprint() {
  const hash = createHash('sha256').update(require('assemblyscript/package.json').version);
  for (const name of readdirSync(join(root, sources)).sort()) {
    const text = readFileSync(join(root, sources, name));
    hash.update(`\n${name} ${text.length}\n`).update(text);
  }
  return `${hash.update(readFileSync(fileURLToPath(import.meta.url))).digest('hex')}\n`;
}

const made = fingerprint();
const isMade =
  existsSync(join(root, output)) &&
  existsSync(fingerprintPath) &&
  readFileSync(fingerprintPath, 'utf8') === made;
if (!isMade) {
  mkdirSync(dirname(join(root, output)), { recursive: true });
  const args = [compiler, `${sources}/index.ts`, '--config', `${sources}/asconfig.json`, '--outFile', output];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
  writeFileSync(fingerprintPath, made);
}
