import ts from 'typescript';
import { expect, it } from 'vitest';
import { parse, placeOf, sourceFiles, visit } from './source-files.js';

const linesMax = 70;

function isFunction(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) ||
    ts.isAccessor(node)
  );
}

it(`no function is longer than ${linesMax} lines`, () => {
  const long: string[] = [];
  for (const file of sourceFiles(['engine', 'agents', 'server', 'bench'])) {
    const source = parse(file);
    visit(source, (node) => {
      if (!isFunction(node) || node.body === undefined) return;
      const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
      const lines = lineOf(node.getEnd()) - lineOf(node.getStart()) + 1;
      if (lines > linesMax) long.push(`${placeOf(source, node)}: ${lines} lines`);
    });
  }
  expect(long).toEqual([]);
});

it('every exported function and class is documented', () => {
  const bare: string[] = [];
  for (const file of sourceFiles(['engine', 'agents', 'server', 'bench'])) {
    const source = parse(file);
    for (const node of source.statements) {
      if (!ts.isFunctionDeclaration(node) && !ts.isClassDeclaration(node)) continue;
      const isExported =
        node.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) === true;
      // Of overloads, the first one carries the documentation.
      const isLaterOverload = source.statements.some(
        (other) =>
          ts.isFunctionDeclaration(other) && other.pos < node.pos && other.name?.text === node.name?.text,
      );
      if (isExported && !isLaterOverload && ts.getJSDocCommentsAndTags(node).length === 0) {
        bare.push(`${placeOf(source, node)}: ${node.name?.text ?? 'default'}`);
      }
    }
  }
  expect(bare).toEqual([]);
});
