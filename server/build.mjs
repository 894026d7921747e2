/**
 * Joins the modules of dist/ into dist/program, which is what is run and installed: Node takes most of the time of a short command to find,
 * read and link some six hundred modules. Packages of others stay where they are. What a worker thread runs is joined apart, so that a
 * thread reads only what its tasks need. Names and lines are left as they are, for the reports of errors.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const program = join(dist, 'program');

/** Shared modules are joined to files of at least so many bytes: a thousand lines are read sooner than another file is found. */
const sharedBytesMin = 20_000;

/** Files below a folder of dist/, by their paths in dist/, with `/` between. */
function filesBelow(folder, ending) {
  return readdirSync(join(dist, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map(({ parentPath, name }) => pathOf(join(parentPath, name)));
}

function pathOf(file) {
  return relative(dist, file).split(sep).join('/');
}

/** A module asks for the URL of its own file to find others beside it. It gets the one that it would have by itself in dist/program. */
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

/** Joins the modules that `entries` need. Each entry keeps its path. */
async function joined(entries, folder, codeSplitting) {
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((path) => [path.replace(/\.js$/, ''), join(dist, path)])),
    platform: 'node',
    // Modules of ours name each other by paths.
    external: (id) => !/^[./]|^[A-Z]:\\/.test(id),
    // A constant has its name wherever it is used, too.
    optimization: { inlineConst: false },
    plugins: [ownPlaces],
    // Some modules are imported at once by one and later by another.
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

// A module with a task names its own file as what threads import. So does the one that begins threads, but for the file beside it.
const tasks = [...filesBelow('engine', '.js'), ...filesBelow('agents', '.js')].filter((path) =>
  readFileSync(join(dist, path), 'utf8').includes('module: builtModule(import.meta.url)'),
);
const groups = [{ name: 'shared', minShareCount: 2, minSize: sharedBytesMin }];
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

// What is there and the same is left alone: it may be running.
for (const [path, bytes] of files) {
  const file = join(program, path);
  if (existsSync(file) && readFileSync(file).equals(bytes)) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}
for (const path of filesBelow('program', ''))
  if (!files.has(path.slice('program/'.length))) rmSync(join(dist, path));

// Says when the last build was, to the tests: what is younger is not in it.
writeFileSync(join(dist, 'build-ended'), '');
