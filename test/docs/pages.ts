import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFiles, root } from '../tidy/source-files.js';

/** A page of the documentation. */
export interface Page {
  /** Relative to the project. */
  readonly path: string;
  readonly text: string;
}

/** A fenced block of a page. */
export interface Fence {
  readonly page: Page;
  /** Number of its first line, for messages. */
  readonly line: number;
  readonly language: string;
  readonly lines: readonly string[];
}

/** The pages at the top and in `docs/`. */
export function documentation(): Page[] {
  return projectFiles()
    .filter((path) => /^[A-Z]+\.md$|^docs\/.*\.md$|^data\/README\.md$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** The fenced blocks of a page; those in lists without their indentation. */
export function fencesOf(page: Page): Fence[] {
  const fences: Fence[] = [];
  let open: { line: number; language: string; indent: number; lines: string[] } | undefined;
  page.text.split('\n').forEach((line, i) => {
    const mark = /^( *)```(\w*)\s*$/.exec(line);
    if (mark === null) open?.lines.push(line.slice(open.indent));
    else if (open === undefined)
      open = { line: i + 2, language: mark[2]!, indent: mark[1]!.length, lines: [] };
    else {
      fences.push({ page, line: open.line, language: open.language, lines: open.lines });
      open = undefined;
    }
  });
  return fences;
}

/** The text of a page outside of fenced blocks. */
export function proseOf(page: Page): string {
  return page.text.replace(/^ *```[\s\S]*?^ *```/gm, '');
}
