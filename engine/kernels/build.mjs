/**
 * Compiles kernel modules into dist/. Each argument is a folder with AssemblyScript sources in `assembly/`: engine/kernels becomes
 * dist/engine/kernels/kernels.wasm, and the types of its exports become dist/signatures/engine/kernels/exports.d.ts. A module is not compiled
 * again if it was made from the same sources by the same compiler, because compiling takes longer than everything else that `npm start` does
 * the second time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(import.meta.url);
const compiler = require.resolve('assemblyscript/bin/asc.js');
const folders = process.argv.slice(2);

/** A hash of the compiler's version, this script, and the sources of all modules, because a module may import from another. */
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
  const output = join(root, 'dist', folder, `${basename(folder)}.wasm`);
  const signatures = join('dist/signatures', folder);
  const types = join(root, signatures, 'exports.d.ts');
  // It is stored beside the output, so that removing dist/ removes it too.
  const fingerprintPath = `${output}.made-of`;
  const isMade = [output, types, fingerprintPath].every((path) => existsSync(path));
  if (isMade && readFileSync(fingerprintPath, 'utf8') === made) return;
  mkdirSync(dirname(output), { recursive: true });
  mkdirSync(dirname(types), { recursive: true });
  const sources = `${folder}/assembly`;
  const compiled = `${signatures}/compiled.wasm`;
  const config = ['--config', `${sources}/asconfig.json`, '--bindings', 'raw', '--outFile', compiled];
  const args = [compiler, `${sources}/index.ts`, ...config];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  // The optimiser prints this line where further passes could still gain. It needs no action.
  process.stderr.write(`${stdout}${stderr}`.replaceAll('Last converge was suboptimal.\n', ''));
  if (status !== 0) process.exit(1);
  writeFileSync(types, signaturesIn(readFileSync(join(root, signatures, 'compiled.d.ts'), 'utf8')));
  renameSync(join(root, compiled), output);
  for (const suffix of ['d.ts', 'js']) rmSync(join(root, signatures, `compiled.${suffix}`));
  writeFileSync(fingerprintPath, made);
}

/** The compiler declares what its own bindings return. Without them, a truth value is a number. */
function signaturesIn(declared) {
  const found = [...declared.matchAll(/export function (.*)/g)].map(([, signature]) => `  ${signature}\n`);
  return `export interface Exports {\n${found.join('').replaceAll('boolean', 'number')}}\n`;
}

/** The range of a module's static data, in the memory that all modules share. */
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
