/**
 * Compiles modules of kernels into dist/, each from the AssemblyScript in `assembly/` of a folder that is named to it: of engine/kernels
 * it makes dist/engine/kernels/kernels.wasm. What lies there stays if it was made of the same sources by the same compiler: compiling
 * takes longer than all else that `npm start` does the second time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(import.meta.url);
const compiler = require.resolve('assemblyscript/bin/asc.js');
const folders = process.argv.slice(2);

/** Of all modules, since one may import from another. */
function fingerprint() {
  const hash = createHash('sha256').update(require('assemblyscript/package.json').version);
  for (const folder of folders) {
    const sources = join(root, folder, 'assembly');
    for (const name of readdirSync(sources).sort()) {
      const text = readFileSync(join(sources, name));
      hash.update(`\n${folder} ${name} ${text.length}\n`).update(text);
    }
  }
  return `${hash.update(readFileSync(fileURLToPath(import.meta.url))).digest('hex')}\n`;
}

function compile(folder, made) {
  const output = join('dist', folder, `${basename(folder)}.wasm`);
  // Beside the output, so that whoever removes dist/ removes it too.
  const fingerprintPath = join(root, `${output}.made-of`);
  const isMade = existsSync(join(root, output)) && existsSync(fingerprintPath);
  if (isMade && readFileSync(fingerprintPath, 'utf8') === made) return;
  mkdirSync(dirname(join(root, output)), { recursive: true });
  const sources = `${folder}/assembly`;
  const args = [compiler, `${sources}/index.ts`, '--config', `${sources}/asconfig.json`, '--outFile', output];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  // The optimiser says so of passes that went on to gain, which is nothing that anybody has to mend.
  process.stderr.write(`${stdout}${stderr}`.replaceAll('Last converge was suboptimal.\n', ''));
  if (status !== 0) process.exit(1);
  writeFileSync(fingerprintPath, made);
}

/** Where a module's own data begins and ends, in the memory that all of them share. */
function dataOf(folder) {
  const { options } = JSON.parse(readFileSync(join(root, folder, 'assembly/asconfig.json'), 'utf8'));
  const module = new WebAssembly.Module(readFileSync(join(root, 'dist', folder, `${basename(folder)}.wasm`)));
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  return { folder, base: options.memoryBase ?? 0, end: exports.dataEnd() };
}

const made = fingerprint();
for (const folder of folders) compile(folder, made);
const data = folders.map(dataOf).sort((a, b) => a.base - b.base);
for (const [i, { folder, end }] of data.entries()) {
  const next = data[i + 1];
  if (next !== undefined && end > next.base) {
    process.stderr.write(
      `the data of ${folder} ends at ${end}, behind where that of ${next.folder} begins\n`,
    );
    process.exitCode = 1;
  }
}
