import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { LogstrataError } from '../../engine/index.js';
import { describeSystemError, SourceError, systemCode } from '../sources/byte-source.js';

/**
 * The files that `patterns` match, each once, in the order of the patterns and within a pattern by name (numbers by value).
 * A path that exists is taken literally, whatever characters it has. All files are checked before any is loaded. Throws
 * `not_found` for a pattern without a file, `invalid` for a folder or a pipe, `io` for a file without read permission.
 *
 * @param folder folder that relative patterns start from
 * @param onPassedOver called with a matching name that is not UTF-8: such a file can't be opened by its name
 */
export async function expandFiles(
  patterns: readonly string[],
  folder: string = process.cwd(),
  onPassedOver: (path: string) => void = () => undefined,
): Promise<string[]> {
  if (patterns.length === 0) throw new LogstrataError('invalid', 'no file to load was named');
  const files: string[] = [];
  const seen = new Set<string>();
  for (const pattern of patterns) {
    for (const path of await expandPattern(pattern, folder, onPassedOver)) {
      const place = resolve(folder, path);
      const real = await requireReadableFile(place, path);
      if (seen.has(real)) continue;
      seen.add(real);
      files.push(place === resolve(path) ? path : place);
    }
  }
  return files;
}

async function expandPattern(
  pattern: string,
  folder: string,
  onPassedOver: (path: string) => void,
): Promise<string[]> {
  if (pattern === '') throw new LogstrataError('invalid', 'the name of a file to load is empty');
  if (await isThere(resolve(folder, pattern))) return [pattern];
  const { glob, isDynamicPattern } = await import('tinyglobby');
  if (!isDynamicPattern(pattern))
    throw new SourceError('not_found', `${pattern} is not there`, { path: pattern });
  const paths: string[] = [];
  for (const path of await glob(pattern, {
    cwd: folder,
    absolute: isAbsolute(pattern),
    onlyFiles: true,
    dot: true,
    expandDirectories: false,
  })) {
    // In a name that is not UTF-8, bytes are replaced, so it names no file.
    if (path.includes('\ufffd') && !(await isThere(resolve(folder, path)))) onPassedOver(path);
    else paths.push(path);
  }
  if (paths.length === 0) throw new SourceError('not_found', `${pattern} matches no file`, { path: pattern });
  return paths.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR' || systemCode(error) === 'EINVAL')
      return false;
    throw describeSystemError(error, path);
  }
}

async function requireReadableFile(place: string, path: string): Promise<string> {
  try {
    const stats = await stat(place);
    if (stats.isDirectory()) {
      throw new SourceError('invalid', `${path} is a folder; name its files: '${join(path, '*')}'`, { path });
    }
    if (!stats.isFile()) {
      const hint = 'pipe it in: … | logstrata load AGENT -';
      throw new SourceError('invalid', `${path} is not a regular file; ${hint}`, { path });
    }
    await access(place, constants.R_OK);
    return await realpath(place);
  } catch (error) {
    throw error instanceof SourceError ? error : describeSystemError(error, path);
  }
}
