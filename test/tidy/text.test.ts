import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, projectFiles, root, sourceFiles, visit } from './source-files.js';

const everywhere = ['engine', 'agents', 'server', 'bench', 'test'];
const product = ['engine', 'agents', 'server', 'bench'];
const textEndings = /(\.(ts|js|mjs|json|yaml|yml|md|txt|sh)|^\.ci\/[^/]+)$/;
const linesMax = 800;

/** `path:line` of every line in the files that matches `pattern`. */
function linesWith(files: readonly { path: string; text: string }[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  );
}

function textFiles(): { path: string; text: string }[] {
  return projectFiles()
    .filter((path) => textEndings.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

it('no folder has a meaningless name', () => {
  const meaningless = [
    'utils',
    'util',
    'helpers',
    'helper',
    'common',
    'lib',
    'libs',
    'src',
    'misc',
    'shared',
  ];
  const folders = new Set(projectFiles().flatMap((path) => posix.dirname(path).split('/')));
  expect(meaningless.filter((name) => folders.has(name))).toEqual([]);
});

it(`no file is longer than ${linesMax} lines`, () => {
  const long = sourceFiles(everywhere)
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > linesMax);
  expect(long).toEqual([]);
});

it('no text contains a mark for unfinished work', () => {
  // Joined here, so that this file does not match itself.
  const marks = ['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'];
  const files = textFiles().filter(({ path }) => path !== 'package-lock.json');
  expect(linesWith(files, new RegExp(`\\b(${marks.join('|')})\\b`))).toEqual([]);
});

it('no test is skipped or singled out, except through needs.ts, where its name says what is missing', () => {
  const pattern = new RegExp('\\b(it|test|describe)\\.(skip|on' + 'ly|todo|skipIf|runIf)\\b');
  const files = sourceFiles(['test']).filter(({ path }) => path !== 'test/needs.ts');
  expect(linesWith(files, pattern)).toEqual([]);
});

it('no test ends early, as if it had passed, because something is missing', () => {
  const found: string[] = [];
  const missing =
    /process\.platform|getuid|existsSync\(|spawnSync\(|missing|isThere|shown === undefined|typeof/;
  for (const file of sourceFiles(['test'])) {
    const source = parse(file);
    visit(source, (node) => {
      if (!ts.isCallExpression(node) || !/^(it|test)\b/.test(node.expression.getText(source))) return;
      const body = node.arguments.findLast(ts.isArrowFunction)?.body;
      if (body === undefined || !ts.isBlock(body)) return;
      for (const statement of body.statements)
        if (
          ts.isIfStatement(statement) &&
          missing.test(statement.expression.getText(source)) &&
          /\breturn;/.test(statement.thenStatement.getText(source))
        )
          found.push(placeOf(source, statement));
    });
  }
  expect(found).toEqual([]);
});

it('types and lints are not disabled anywhere', () => {
  const found = linesWith(
    sourceFiles(product),
    /@ts-(ignore|expect-error|nocheck)|eslint-disable|biome-ignore/,
  );
  for (const file of sourceFiles(product)) {
    const source = parse(file);
    visit(source, (node) => {
      if (node.kind === ts.SyntaxKind.AnyKeyword) found.push(`${placeOf(source, node)}: any`);
    });
  }
  expect(found).toEqual([]);
});

it('no path of the machine on which it was written is in the tree', () => {
  // Computed here: the project's own folder, the folder next to it, and the home folder.
  const paths = [`${root}/`, `${join(dirname(root), 'shared')}/`, `${homedir()}/`].filter(
    (path) => path.length > 3,
  );
  const found = textFiles().flatMap(({ path, text }) =>
    paths.filter((machinePath) => text.includes(machinePath)).map((machinePath) => `${path}: ${machinePath}`),
  );
  expect(found).toEqual([]);
});

it('the lockfile names no registry', () => {
  expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toContain('"resolved": "http');
});

it('every limit of limits.ts is used', () => {
  const source = parse({
    path: 'engine/core/limits.ts',
    text: readFileSync(join(root, 'engine/core/limits.ts'), 'utf8'),
  });
  const names: string[] = [];
  visit(source, (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name)) names.push(node.name.text);
  });
  const others = sourceFiles(['engine', 'agents', 'server']).filter(
    ({ path }) => path !== 'engine/core/limits.ts',
  );
  const unused = names.filter((name) => !others.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text)));
  expect(names.length).toBeGreaterThan(10);
  expect(unused).toEqual([]);
});
