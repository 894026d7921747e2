import { existsSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, root, sourceFiles, sourceOf, visit } from './source-files.js';

/** The folders that each top-level folder may import from. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  engine: ['engine'],
  agents: ['engine', 'agents'],
  server: ['engine', 'agents', 'server'],
  // The plain twins with which kernels are compared in benchmarks are among the tests.
  bench: ['engine', 'agents', 'server', 'bench', 'test'],
  test: ['engine', 'agents', 'server', 'bench', 'test'],
};

/** All that the engine may need, because it contains no HTTP, no YAML and no log lines. */
const enginePackages = [
  'apache-arrow',
  'hyparquet',
  '@bokuweb/zstd-wasm',
  'zstddec/stream',
  '@aws-sdk/client-s3',
  '@clickhouse/client',
  're2js',
];
const engineForbidden = ['http', 'https', 'http2', 'child_process', 'readline'];

interface Import {
  readonly from: string;
  readonly specifier: string;
  readonly place: string;
  /** An import whose module is loaded before any of the importing module runs. */
  readonly isAtOnce: boolean;
}

function importsOf(folders: readonly string[]): Import[] {
  const found: Import[] = [];
  for (const file of sourceFiles(folders)) {
    const source = parse(file);
    const add = (node: ts.Node | undefined, isAtOnce = false): void => {
      if (node !== undefined && ts.isStringLiteral(node)) {
        found.push({ from: file.path, specifier: node.text, place: placeOf(source, node), isAtOnce });
      }
    };
    visit(source, (node) => {
      if (ts.isImportDeclaration(node))
        add(node.moduleSpecifier, node.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword);
      if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, !node.isTypeOnly);
      if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
        add(node.arguments[0]);
      if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal);
    });
  }
  return found;
}

const imports = importsOf(Object.keys(mayImport));

it('imports are found', () => {
  expect(imports.length).toBeGreaterThan(50);
});

it('imports point one way: engine <- agents <- server', () => {
  const wrong = imports.filter(({ from, specifier }) => {
    if (!specifier.startsWith('.')) return false;
    const target = posix.join(posix.dirname(from), specifier).split('/')[0]!;
    return !mayImport[from.split('/')[0]!]!.includes(target);
  });
  expect(wrong.map(({ place, specifier }) => `${place} imports ${specifier}`)).toEqual([]);
});

it('relative imports name an existing file, with the suffix of its built form', () => {
  const wrong = imports.filter(({ from, specifier }) => {
    if (!specifier.startsWith('.')) return false;
    const target = posix.join(posix.dirname(from), specifier);
    // The compiler of the kernels requires imports without suffixes.
    if (from.includes('/assembly/')) return !existsSync(join(root, `${target}.ts`));
    // The build makes the types of the kernels.
    if (existsSync(join(root, 'dist/signatures', target.replace(/\.js$/, '.d.ts')))) return false;
    return !existsSync(join(root, sourceOf(target))) && !existsSync(join(root, target));
  });
  expect(wrong.map(({ place, specifier }) => `${place} imports ${specifier}`)).toEqual([]);
});

it('the engine imports nothing for YAML or log lines, and HTTP only to ask the process that writes', () => {
  const wrong = imports.filter(({ from, specifier }) => {
    if (!from.startsWith('engine/') || specifier.startsWith('.')) return false;
    if (from === 'engine/store/writer/writer-channel.ts' && specifier === 'node:http2') return false;
    if (specifier.startsWith('node:')) return engineForbidden.includes(specifier.slice('node:'.length));
    return !enginePackages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
  });
  expect(wrong.map(({ place, specifier }) => `${place} imports ${specifier}`)).toEqual([]);
});

it('built-in modules are named with node:', () => {
  const wrong = imports.filter(({ specifier }) => builtinModules.includes(specifier));
  expect(wrong.map(({ place, specifier }) => `${place} imports ${specifier}`)).toEqual([]);
});

/** The files and packages that are loaded before any of `start` runs. */
function loadedWith(start: string): Set<string> {
  const loaded = new Set([start]);
  for (const file of loaded) {
    for (const { from, specifier, isAtOnce } of imports) {
      if (from !== file || !isAtOnce || specifier.startsWith('node:')) continue;
      const path = posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts');
      loaded.add(specifier.startsWith('.') ? path : specifier);
    }
  }
  return loaded;
}

it('the engine loads Arrow only when there is a batch to write or to read', () => {
  const loaded = [...loadedWith('engine/archive/archive.ts')];
  expect(loaded).toContain('engine/store/hot/arrow-batch.ts');
  expect(loaded.filter((name) => name.startsWith('apache-arrow'))).toEqual([]);
});

it('the command line loads the modules of a command only when it runs', () => {
  const loaded = [...loadedWith('server/main.ts')];
  expect(loaded).toContain('server/cli/commands.ts');
  expect(loaded.filter((name) => !name.endsWith('.ts'))).toEqual(['commander']);
  const late = [
    'engine/archive/archive.ts',
    'agents/definition/agent-file.ts',
    'agents/collect/collection.ts',
    'server/route/server.ts',
    'server/cli/stats.ts',
  ];
  expect(loaded.filter((name) => late.includes(name))).toEqual([]);
});

it('the built modules that tests and benchmarks run by name have a source', () => {
  // An older build may still contain a module whose source was moved, which only a fresh clone would reveal.
  const named = sourceFiles(['bench', 'test']).flatMap(({ path, text }) =>
    [...text.matchAll(/\bdist\/(?:program\/)?([a-z/-]+)\.js\b/g)].map(([, module]) => ({
      path,
      module: module!,
    })),
  );
  expect(named.length).toBeGreaterThan(10);
  const made = ['test/deploy/package.test.ts'];
  expect(
    named.filter(({ path, module }) => !made.includes(path) && !existsSync(join(root, `${module}.ts`))),
  ).toEqual([]);
});
