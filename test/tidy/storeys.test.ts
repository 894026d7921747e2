import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse, placeOf, root, sourceFiles, sourceOf, visit } from './source-files.js';

/** The folders of the product from the lowest up, each with the folders that its files import. */
const folders = readFileSync(join(root, 'test/tidy/folders.txt'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split(/:? /))
  .map(([name, ...imports]) => ({ name: name!.replace(/:$/, ''), imports }));

/** The folders that ARCHITECTURE.md describes. */
const described = [
  ...readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(
    /^\| `((?:engine|agents|server)[a-z/]*)` \| [^|]+ \|$/gm,
  ),
].map(([, name]) => name!);

const product = sourceFiles(['engine', 'agents', 'server']).filter(
  ({ path }) => !path.includes('/assembly/'),
);

interface Import {
  readonly from: string;
  readonly to: string;
  readonly place: string;
}

/** Every import of one file of the product by another, including type imports. */
const imports: readonly Import[] = product.flatMap((file) => {
  const source = parse(file);
  const found: Import[] = [];
  const add = (node: ts.Node | undefined): void => {
    if (node === undefined || !ts.isStringLiteral(node) || !node.text.startsWith('.')) return;
    const to = sourceOf(posix.join(posix.dirname(file.path), node.text));
    found.push({ from: file.path, to, place: placeOf(source, node) });
  };
  visit(source, (node) => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier);
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0]);
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal);
  });
  return found;
});

const folderOf = (path: string): string => posix.dirname(path);
const floorOf = new Map(folders.map(({ name }, floor) => [name, floor]));

describe('the folders of the product', () => {
  it('are those of the list, and ARCHITECTURE.md describes each', () => {
    const found = [...new Set(product.map(({ path }) => folderOf(path)))].sort();
    expect([...floorOf.keys()].sort()).toEqual(found);
    expect([...described].sort()).toEqual(found);
  });

  it('import downwards only', () => {
    const up = imports.filter(({ from, to }) => floorOf.get(folderOf(to))! > floorOf.get(folderOf(from))!);
    expect(up.map(({ place, to }) => `${place} imports ${to}`)).toEqual([]);
  });

  it.each(folders)('$name imports only the folders in the list', ({ name, imports: said }) => {
    const found = new Set(
      imports.filter(({ from }) => folderOf(from) === name).map(({ to }) => folderOf(to)),
    );
    found.delete(name);
    expect([...found].sort()).toEqual([...said].sort());
  });
});

it('agents and server import the engine only through its public modules', () => {
  // The viewer runs in browsers, and has only the names of the types from the engine. Patterns and times are apart from the engine's index,
  // so that commands without them don't load their parsers.
  const isPublic = ({ from, to }: Import): boolean =>
    to === 'engine/index.ts' ||
    to.startsWith('engine/patterns/') ||
    to.startsWith('engine/times/') ||
    (from.startsWith('server/viewer/') && to === 'engine/core/field-types.ts');
  const round = imports.filter(
    (each) => !each.from.startsWith('engine/') && each.to.startsWith('engine/') && !isPublic(each),
  );
  expect(round.map(({ place, to }) => `${place} imports ${to}`)).toEqual([]);
});

it('no files import each other in a circle', () => {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
  const done = new Set<string>();
  const circles: string[] = [];
  const follow = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '));
    if (path.includes(file) || done.has(file)) return;
    for (const next of targets.get(file) ?? []) follow(next, [...path, file]);
    done.add(file);
  };
  for (const { path } of product) follow(path, []);
  expect(circles).toEqual([]);
});
