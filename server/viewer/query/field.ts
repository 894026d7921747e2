/** The types of fields, as in an agent's file. */
export type FieldType = 'int' | 'float' | 'bool' | 'time' | 'string';

/** A field of an agent, as in the response of `/api/schema`. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly description?: string | undefined;
}

/** In place of a field's name in a filter: all fields of type string. */
export const anyField = '*';

/** The name of a field as shown to the user. */
export function fieldWords(name: string): string {
  return name === anyField ? 'any field' : name;
}

/** Whether a search in the field named `searched`, which may be `anyField`, includes this field. */
export function isSearched({ name, type }: Field, searched: string | undefined): boolean {
  return name === searched || (searched === anyField && type === 'string');
}

const levelNames = ['level', 'severity', 'log_level', 'loglevel', 'lvl', 'priority'];
const statusNames = ['status', 'status_code', 'http_status', 'code'];
// Access logs have no message; the requested path is the most useful text then.
const textNames = ['message', 'msg', 'text', 'log', 'body', 'line', 'event', 'path', 'uri', 'url', 'request'];
const originNames = [
  'service',
  'component',
  'logger',
  'module',
  'program',
  'app',
  'host',
  'hostname',
  'remote_addr',
];

function firstNamed(fields: readonly Field[], names: readonly string[]): Field | undefined {
  for (const name of names) {
    const found = fields.find((field) => field.name === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The field with the time of a record: the first of type time. */
export function timeFieldOf(fields: readonly Field[]): string | undefined {
  return fields.find(({ type }) => type === 'time')?.name;
}

/** The field with the main text of a record: one with a name for messages, else the last of type string. */
export function textFieldOf(fields: readonly Field[]): string | undefined {
  const strings = fields.filter(({ type }) => type === 'string');
  return (firstNamed(strings, textNames) ?? strings.at(-1))?.name;
}

/** The field with the severity of a record: one with a name for levels, else one with a name for statuses. */
export function severityFieldOf(fields: readonly Field[]): string | undefined {
  return (firstNamed(fields, levelNames) ?? firstNamed(fields, statusNames))?.name;
}

/** The default columns: time, severity, up to two fields for the origin, and the text. */
export function usualColumns(fields: readonly Field[]): readonly string[] {
  const text = textFieldOf(fields);
  const origins = fields.filter(({ name }) => originNames.includes(name)).map(({ name }) => name);
  const names = [timeFieldOf(fields), severityFieldOf(fields), ...origins.slice(0, 2), text];
  const found = [...new Set(names.filter((name) => name !== undefined))];
  const rest = fields.map(({ name }) => name).filter((name) => !found.includes(name));
  // With too few of these, other fields are shown as well.
  return found.length > 2 ? found : [...found, ...rest.slice(0, 4)];
}
