import type { ObjectStorage, Schema } from '../../engine/index.js';
import { schemaOf } from '../definition/agent-file.js';
import { ConfigError } from '../definition/config-error.js';
import type { AgentDefinition } from '../definition/definition.js';
import { reportArchive } from './archive-report.js';

/** Limit on the notes about columns that are left out. */
const notesMax = 20;

/**
 * Completes the definition of an agent whose fields are the columns of its files: with the stored fields, or else with those
 * that all of its files have. Throws `ConfigError` where there are none, or none that `archive.time` means.
 *
 * @param stored the schema that the agent has in the archive; it saves reading thousands of footers at each start
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
  const { columns, fieldProblems, leftOut, problems } = await reportArchive(
    definition,
    archive,
    dataFolder,
    objects,
    onProgress,
  );
  const why = [...fieldProblems];
  if (columns.length === 0) {
    const unread = problems[0] === undefined ? 'no file was found' : problems[0].message;
    why.push(`the agent "${name}" lists no fields, and its archive has none: ${unread}`);
  }
  if (why.length > 0)
    throw new ConfigError(why.map((message) => ({ file: path, ...archive.place, message })));
  const fields = columns.map(({ field }) => ({ name: field.name, type: field.type, source: field.column }));
  const notes = [...definition.notes, ...leftOut.slice(0, notesMax)];
  return { ...definition, fields, schema: schemaOf(fields, true), notes };
}
