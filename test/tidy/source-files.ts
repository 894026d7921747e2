import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';

export const root = join(import.meta.dirname, '../..');

/** Folders whose files were generated, installed or collected rather than written. */
const notOurs = new Set(['node_modules', 'dist', 'coverage', '.git']);
const notOursPaths = new Set(['data/store', 'bench/data']);

export interface TextFile {
  /** Relative to the project, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Every written file, as a path relative to the project. */
export function projectFiles(folder = root): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const shown = relative(root, path).split(sep).join('/');
    if (entry.isDirectory()) {
      if (!notOurs.has(entry.name) && !notOursPaths.has(shown)) found.push(...projectFiles(path));
    } else if (entry.isFile()) {
      found.push(shown);
    }
  }
  return found.sort();
}

/** The TypeScript files in the given top-level folders. */
export function sourceFiles(folders: readonly string[]): TextFile[] {
  return projectFiles()
    .filter((path) => /\.tsx?$/.test(path) && folders.includes(path.split('/')[0]!))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

export function parse(file: TextFile): ts.SourceFile {
  const kind = file.path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  return ts.createSourceFile(file.path, file.text, ts.ScriptTarget.ES2023, true, kind);
}

export function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

/** The source of an imported built module: `.ts`, or `.tsx` if it has parts of a page. */
export function sourceOf(module: string): string {
  const source = module.replace(/\.js$/, '.ts');
  return source !== module && !existsSync(join(root, source)) && existsSync(join(root, `${source}x`))
    ? `${source}x`
    : source;
}

/** `path:line` of a node, for messages that an editor can open. */
export function placeOf(source: ts.SourceFile, node: ts.Node): string {
  return `${source.fileName}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
}
