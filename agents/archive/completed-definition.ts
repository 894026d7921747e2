import type { ObjectStorage, Schema } from '../../engine/index.js';
import { schemaOf } from '../definition/agent-file.js';
import { ConfigError } from '../definition/config-error.js';
import type { AgentDefinition } from '../definition/definition.js';
import { reportArchive } from './archive-report.js';

/**
 * The definition of an agent with its fields, where those are the columns of its files: as it was stored with them, or else as all of its files
 * say. Throws a `ConfigError` where they make no fields, or there are none.
 *
 * @param stored the fields that it has in the archive, so that a start does not wait for ten thousand footers
 */
export async function completedDefinition(
  definition: AgentDefinition,
  stored: Schema | undefined,
  dataFolder: string | undefined,
  objects: ObjectStorage | undefined,
  onProgress: (read: number, files: number) => void,
): Promise<AgentDefinition> {
  const { archive, path, name } = definition;
  if (archive?.infersFields !== true) return definition;
  const known = stored?.fields.map((field) => ({
    name: field.name,
    type: field.type,
    source: field.attached?.column ?? field.name,
    ...(field.attached?.unit === undefined ? {} : { unit: field.attached.unit }),
  }));
  const placing = known?.find(({ type }) => type === 'time');
  if (known !== undefined && [undefined, placing?.name, placing?.source].includes(archive.time))
    return { ...definition, fields: known, schema: schemaOf(known, true) };
  const { columns, fieldProblems, problems } = await reportArchive(
    definition,
    archive,
    dataFolder,
    objects,
    onProgress,
  );
  const why = [...fieldProblems];
  if (columns.length === 0) {
    const unread = problems[0] === undefined ? 'no file is there' : problems[0].message;
    why.push(`the agent "${name}" lists no fields, and its archive has none: ${unread}`);
  }
  if (why.length > 0)
    throw new ConfigError(why.map((message) => ({ file: path, ...archive.place, message })));
  const fields = columns.map(({ field }) => ({ name: field.name, type: field.type, source: field.column }));
  return { ...definition, fields, schema: schemaOf(fields, true) };
}
