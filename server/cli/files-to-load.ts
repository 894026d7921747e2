import type { FoundFile } from '../../agents/archive/found-files.js';
import type { AgentDefinition, ArchiveInput } from '../../agents/definition/definition.js';
import { isObjectPath, LogstrataError } from '../../engine/index.js';
import { withObjects } from './opened-archive.js';
import type { Settings } from './options.js';
import { UsageError } from './failure.js';
import { tell } from './terminal.js';

/** The files to load. */
export interface FilesToLoad {
  readonly paths: readonly string[];
  /** Details of the files that were found by the archive's patterns; empty where files were named. */
  readonly found: readonly FoundFile[];
}

/**
 * The files to load: the named files and patterns, or the files of the agent's archive where none is named. Throws a `UsageError` where
 * there is neither; `not_found` where a pattern matches nothing.
 */
export async function filesToLoad(
  paths: readonly string[],
  { name, archive }: AgentDefinition,
  settings: Settings,
): Promise<FilesToLoad> {
  if (paths.length > 0) return { paths: await namedFiles(paths, name, settings), found: [] };
  if (archive?.mode !== 'import')
    throw new UsageError(
      'no file is named: give files or patterns, - for standard input, or --rejected',
      'The agent comes first: logstrata load AGENT FILE…',
    );
  return filesOfArchive(archive, settings);
}

async function namedFiles(
  paths: readonly string[],
  agent: string,
  settings: Settings,
): Promise<readonly string[]> {
  const files: string[] = [];
  const onDisk = paths.filter((path) => !isObjectPath(path));
  if (onDisk.length > 0) {
    const { expandFiles } = await import('../../agents/load/load-paths.js');
    const found = await expandFiles(onDisk, undefined, (path) =>
      tell(
        `warning  ${path} is skipped: its name is not UTF-8; rename it, or: cat … | logstrata load ${agent} -`,
      ),
    );
    files.push(...found);
  }
  for (const glob of paths.filter(isObjectPath)) files.push(...(await namedObjects(glob, settings)));
  return [...new Set(files)];
}

/** The objects that a pattern matches, in the order of their names. */
async function namedObjects(glob: string, settings: Settings): Promise<readonly string[]> {
  const { archiveFilesMax } = await import('../../agents/archive/found-files.js');
  const { listObjects } = await import('../../agents/archive/found-files.js');
  const listed = await withObjects(settings, false, (objects) => listObjects(glob, objects, archiveFilesMax));
  if (listed === undefined) throw new LogstrataError('limit', `${glob} names too many objects`);
  if (listed.problem !== undefined) throw new LogstrataError('io', listed.problem, { path: glob });
  if (listed.objects.length === 0)
    throw new LogstrataError('not_found', `${glob} matches no object`, { path: glob });
  return listed.objects.map(({ path }) => path);
}

async function filesOfArchive(archive: ArchiveInput, settings: Settings): Promise<FilesToLoad> {
  const { findFiles } = await import('../../agents/archive/found-files.js');
  const { files, problems } = await withObjects(settings, false, (objects) =>
    findFiles(archive, settings.dataFolder, objects),
  );
  for (const { message } of problems) tell(`warning  ${message}`);
  if (files.length === 0) {
    const globs = archive.globs.map(({ glob }) => glob).join(', ');
    throw new LogstrataError('not_found', `archive.path (${globs}) names no file`);
  }
  return { paths: files.map(({ path }) => path), found: files };
}
