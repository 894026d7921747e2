import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectFiles, root } from '../tidy/source-files.js';
import { documentation, proseOf, type Page } from './pages.js';

const pages = documentation();
const files = projectFiles();

/** The anchor of a heading, as GitHub generates it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/`/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

function anchorsOf(page: Page): Set<string> {
  return new Set([...proseOf(page).matchAll(/^#+ (.*)$/gm)].map((match) => anchorOf(match[1]!)));
}

/** The mistake in a relative link, or undefined. */
function linkProblem(page: Page, target: string): string | undefined {
  const [path, anchor] = target.split('#') as [string, string?];
  const to = path === '' ? page.path : posix.join(dirname(page.path), path);
  if (!existsSync(join(root, to))) return `${page.path}: ${target} is not there`;
  if (anchor === undefined) return undefined;
  const linked = pages.find((candidate) => candidate.path === to);
  return linked !== undefined && anchorsOf(linked).has(anchor)
    ? undefined
    : `${page.path}: ${target} has no such heading`;
}

describe('documentation', () => {
  it('has the pages that a reader looks for', () => {
    const paths = pages.map(({ path }) => path);
    for (const path of ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'docs/format.md', 'docs/cli.md']) {
      expect(paths).toContain(path);
    }
  });

  it('links to existing pages and headings', () => {
    const problems = pages.flatMap((page) =>
      [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
        .map((match) => match[1]!)
        .filter((target) => !/^[a-z]+:/.test(target))
        .flatMap((target) => linkProblem(page, target) ?? []),
    );
    expect(problems).toEqual([]);
  });

  it('names existing source files', () => {
    const named = pages.flatMap((page) =>
      [...proseOf(page).matchAll(/`([a-z.][\w./-]*\.(?:ts|mjs))`/g)].map((match) => match[1]!),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !files.some((file) => file === name || file.endsWith(`/${name}`)))).toEqual(
      [],
    );
  });

  it('names existing folders of the project', () => {
    const folders = pages.flatMap((page) =>
      [
        ...proseOf(page).matchAll(
          /`((?:engine|agents|server|bench|test|docs)(?:\/[\w-]+)*)\/?`|`(data\/samples)\/`/g,
        ),
      ].map((match) => match[1] ?? match[2]!),
    );
    expect(folders.length).toBeGreaterThan(10);
    expect(folders.filter((folder) => !existsSync(join(root, folder)))).toEqual([]);
  });
});
