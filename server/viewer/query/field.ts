/** Types of fields, as an agent's file names them. */
export type FieldType = 'int' | 'float' | 'bool' | 'time' | 'string';

/** One field of an agent, as `/api/schema` tells of it. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly description?: string | undefined;
}

/** Stands for all fields of type string where a filter names its field. */
export const anyField = '*';

/** The name of a field for readers. */
export function fieldWords(name: string): string {
  return name === anyField ? 'any field' : name;
}

/** Whether a search in `sought`, one field or any of them, looks into this one. */
export function isSought({ name, type }: Field, sought: string | undefined): boolean {
  return name === sought || (sought === anyField && type === 'string');
}

const levelNames = ['level', 'severity', 'log_level', 'loglevel', 'lvl', 'priority'];
const statusNames = ['status', 'status_code', 'http_status', 'code'];
// Access logs have no message: what was asked for says most.
const textNames = ['message', 'msg', 'text', 'log', 'body', 'line', 'event', 'path', 'uri', 'url', 'request'];
const originNames = ['service', 'component', 'logger', 'module', 'app', 'host', 'hostname', 'remote_addr'];

function firstNamed(fields: readonly Field[], names: readonly string[]): Field | undefined {
  for (const name of names) {
    const found = fields.find((field) => field.name === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The field that says when a record was made: the agent's first of type time. */
export function timeFieldOf(fields: readonly Field[]): string | undefined {
  return fields.find(({ type }) => type === 'time')?.name;
}

/** The field that is read first in a record: its message by name, else its last string. */
export function textFieldOf(fields: readonly Field[]): string | undefined {
  const strings = fields.filter(({ type }) => type === 'string');
  return (firstNamed(strings, textNames) ?? strings.at(-1))?.name;
}

/** The field that says how bad a record is: a level or a status by name. */
export function severityFieldOf(fields: readonly Field[]): string | undefined {
  return (firstNamed(fields, levelNames) ?? firstNamed(fields, statusNames))?.name;
}

/** The columns of a table that nobody has changed: when, how bad, from where, and what. */
export function usualColumns(fields: readonly Field[]): readonly string[] {
  const text = textFieldOf(fields);
  const origins = fields.filter(({ name }) => originNames.includes(name)).map(({ name }) => name);
  const names = [timeFieldOf(fields), severityFieldOf(fields), ...origins.slice(0, 2), text];
  const found = [...new Set(names.filter((name) => name !== undefined))];
  const rest = fields.map(({ name }) => name).filter((name) => !found.includes(name));
  // Without a message the record is its fields.
  return found.length > 2 ? found : [...found, ...rest.slice(0, 6)];
}
