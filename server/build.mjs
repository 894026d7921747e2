/**
 * Bundles the modules of dist/ into dist/program, which is what is installed and run: without bundling, Node spends most of the time of a
 * short command on finding, reading and linking some six hundred modules. Packages of node_modules are not bundled. The code of worker
 * threads has a bundle of its own, so that a thread reads only what its tasks need. Code is not minified, so that error reports show names
 * and lines.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const program = join(dist, 'program');

/** Minimum size in bytes of a chunk of shared modules: reading a thousand lines is faster than finding another file. */
const sharedBytesMin = 20_000;

/** Paths of the files below a folder of dist/, relative to dist/, with `/` as the separator. */
function filesBelow(folder, ending) {
  return readdirSync(join(dist, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map(({ parentPath, name }) => pathOf(join(parentPath, name)));
}

function pathOf(file) {
  return relative(dist, file).split(sep).join('/');
}

/**
 * Replaces `import.meta.url` of a bundled module by the URL that the module would have at its own path in dist/program, because modules use
 * it to find files beside them.
 */
const ownPlaces = {
  name: 'own-places',
  transform(code, id) {
    return code.replaceAll('import.meta.url', `(urlOfProgram + '${pathOf(id)}')`);
  },
  renderChunk(code, { fileName }) {
    const up = `./${'../'.repeat(fileName.split('/').length - 1)}`;
    return code.replaceAll('urlOfProgram', `new URL('${up}', import.meta.url).href`);
  },
};

/**
 * Bundles `entries` with the modules that they import. Each entry keeps its path; shared chunks go into `folder`. Returns pairs of a file's
 * name and its content.
 */
async function joined(entries, folder, codeSplitting) {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((path) => [path.replace(/\.js$/, ''), join(dist, path)])),
    platform: 'node',
    // Our own modules are imported by paths, packages by names.
    external: (id) => !/^[./]|^[A-Z]:\\/.test(id),
    // Keeps the names of constants where they are used.
    optimization: { inlineConst: false },
    plugins: [ownPlaces],
    // Rolldown warns of modules that are imported statically in one place and dynamically in another. Both are intended.
    onLog: (level, log, report) => log.code === 'INEFFECTIVE_DYNAMIC_IMPORT' || report(level, log),
  });
  const { output } = await bundle.generate({
    format: 'esm',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: `${folder}/[name].js`,
    codeSplitting,
  });
  await bundle.close();
  return output.map(({ fileName, code }) => [fileName, Buffer.from(code)]);
}

// The entries for threads: modules with a task name their own file, which threads import. The module that starts threads does so too, but
// names the file beside it (`thread.js`), so it is not in this list. An earlier build may have left modules whose source is gone since.
const tasks = [...filesBelow('engine', '.js'), ...filesBelow('agents', '.js')].filter(
  (path) =>
    existsSync(join(dist, '..', path.replace(/\.js$/, '.ts'))) &&
    readFileSync(join(dist, path), 'utf8').includes('taskIn(import.meta.url, '),
);

/** The modules that a module imports, itself or through others, when it is loaded: not those that it imports when it runs. */
function importedBy(module, found = new Set()) {
  const code = readFileSync(module, 'utf8');
  for (const [, path] of code.matchAll(/^(?:import|export)\b(?:[^;'"]*\bfrom)?\s*['"](\.[^'"]+\.js)['"]/gm)) {
    const imported = join(dirname(module), path);
    if (!found.has(imported)) importedBy(imported, found.add(imported));
  }
  return found;
}

// What every command needs is in one file; what three commands or more share is in another.
const start = importedBy(join(dist, 'server/main.js'));
const groups = [
  { name: 'start', test: (id) => start.has(id), priority: 1 },
  { name: 'shared', minShareCount: 3, minSize: sharedBytesMin },
];
const copied = [
  ...filesBelow('engine', '.wasm'),
  ...filesBelow('agents', '.wasm'),
  ...filesBelow('viewer', ''),
];
const files = new Map([
  ...(await joined(['server/main.js'], 'joined', { groups })),
  ...(await joined(['engine/workers/thread.js', ...tasks], 'joined-for-threads', true)),
  ...copied.map((path) => [path, readFileSync(join(dist, path))]),
]);

// Files whose content has not changed are not written: a running process may use them.
for (const [path, bytes] of files) {
  const file = join(program, path);
  if (existsSync(file) && readFileSync(file).equals(bytes)) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}
for (const path of filesBelow('program', ''))
  if (!files.has(path.slice('program/'.length))) rmSync(join(dist, path));

// Records the time of the build for the tests: sources that are newer are not in it.
writeFileSync(join(dist, 'build-ended'), '');
