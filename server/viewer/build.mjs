/**
 * Builds the viewer into dist/viewer: the static files that the console serves. An existing build is kept if it was made from the same
 * sources by the same tools.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = dirname(fileURLToPath(import.meta.url));
const output = join(sources, '../../dist/viewer');
// Next to the output, so that removing dist/ removes it as well.
const fingerprintPath = `${output}.made-of`;
const require = createRequire(import.meta.url);

function fingerprint() {
  const hash = createHash('sha256');
  for (const name of ['preact', '@preact/signals', '@preact/signals-core', 'uplot', 'vite'])
    hash.update(`${name} ${versionOf(name)}\n`);
  const files = readdirSync(sources, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const path of files.map(({ parentPath, name }) => join(parentPath, name)).sort()) {
    const bytes = readFileSync(path);
    hash.update(`\n${path.slice(sources.length)} ${bytes.length}\n`).update(bytes);
  }
  return `${hash.digest('hex')}\n`;
}

/** The version of a package, even if its `exports` hide package.json. */
function versionOf(name) {
  const folder = require.resolve.paths(name).find((path) => existsSync(join(path, name, 'package.json')));
  return JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')).version;
}

/** Has the browser load all scripts at once. The entry imports the largest one only after it has sent the first requests. */
const preloadScripts = {
  name: 'preload-scripts',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle }) =>
      Object.values(bundle)
        .filter(({ type, isEntry }) => type === 'chunk' && !isEntry)
        .map(({ fileName }) => ({
          tag: 'link',
          attrs: { rel: 'modulepreload', crossorigin: true, href: `./${fileName}` },
          injectTo: 'head',
        })),
  },
};

const made = fingerprint();
const isMade = existsSync(join(output, 'index.html')) && existsSync(fingerprintPath);
if (!isMade || readFileSync(fingerprintPath, 'utf8') !== made) {
  const { build } = await import('vite');
  await build({
    root: sources,
    configFile: false,
    logLevel: 'warn',
    base: './',
    plugins: [preloadScripts],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: output,
      emptyOutDir: true,
      target: ['chrome120', 'firefox121', 'safari17.4'],
      // The Content-Security-Policy of the page allows only files of the server: no data URLs and no inline scripts.
      assetsInlineLimit: 0,
      modulePreload: false,
      // The name of each file contains a hash of its content, so browsers can cache the file for ever.
      rolldownOptions: {
        output: {
          entryFileNames: 'assets/[name]-[hash].js',
          chunkFileNames: 'assets/[name]-[hash].js',
          assetFileNames: 'assets/[name]-[hash][extname]',
        },
      },
    },
  });
  writeFileSync(fingerprintPath, made);
}
