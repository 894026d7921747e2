import { foundFile, type FoundFile } from '../../agents/archive/found-files.js';
import { GrowingFields } from '../../agents/archive/inferred-fields.js';
import type { AgentDefinition, ArchiveInput } from '../../agents/definition/definition.js';
import { formatOf } from '../../agents/load/load-file.js';
import { openerOf } from '../../agents/sources/opened-file.js';
import type { Archive } from '../../engine/index.js';
import { retentionOf } from './options.js';
import { formatCount, formatCounted, withProgress, tell } from './terminal.js';
import type { FilesToLoad } from './files-to-load.js';

/** The files whose columns fit the agent, and the agent with its fields including theirs. */
export interface ColumnsToLoad extends FilesToLoad {
  readonly definition: AgentDefinition;
  /** Number of files that do not fit. Each has been reported on standard error. */
  readonly refused: number;
}

/** Adds the columns of files to the fields of an agent whose own file lists none. Files that do not fit are reported and left out. */
export async function withColumns(
  archive: Archive,
  definition: AgentDefinition,
  input: ArchiveInput,
  { paths, found }: FilesToLoad,
): Promise<ColumnsToLoad> {
  const { objects } = archive;
  const redefine = async ({ name, schema }: AgentDefinition): Promise<void> =>
    void (await archive.redefine(name, schema, retentionOf(definition)));
  const log = { warn: (_facts: object, message: string) => tell(`note     ${message}`) };
  const fields = new GrowingFields({ definition, archive: input, objects, log, redefine });
  const known = new Map(found.map((file) => [file.path, file]));
  const fitting: FoundFile[] = [];
  const fittingPaths: string[] = [];
  await withProgress(`reading the files for ${definition.name}`, async (progress) => {
    for (const [i, path] of paths.entries()) {
      const file = known.get(path) ?? (await namedFile(archive, definition, input, path));
      const problem = await fields.take(file, undefined);
      if (problem !== undefined) tell(`problem  ${problem}`);
      else {
        fitting.push(file);
        fittingPaths.push(path);
      }
      progress.update(
        (i + 1) / paths.length,
        `${formatCount(i + 1)} of ${formatCounted(paths.length, 'file')}`,
      );
    }
  });
  return {
    definition: fields.definition,
    paths: fittingPaths,
    found: fitting,
    refused: paths.length - fitting.length,
  };
}

async function namedFile(
  { objects }: Archive,
  definition: AgentDefinition,
  input: ArchiveInput,
  path: string,
): Promise<FoundFile> {
  const openFile = openerOf(objects);
  const format = await formatOf({ definition, openFile }, path);
  return foundFile(path, format, await openFile(path), input);
}
