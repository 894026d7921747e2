/** The JSON of a known program or standard: what identifies it, and which of its keys mean what. */
interface JsonDialect {
  readonly title: string;
  /** Paths that its lines have. */
  readonly needs: readonly string[];
  /** For each field name the paths that give it; of several, the first that is there. */
  readonly names: readonly (readonly [name: string, ...paths: string[]])[];
  /** The path of a text that may be an array of bytes instead. */
  readonly byteArray?: string;
}

const dialects: readonly JsonDialect[] = [
  {
    title: 'CLEF',
    needs: ['@t'],
    names: [
      ['level', '@l'],
      ['message', '@m', '@mt'],
      ['message_template', '@mt'],
      ['exception', '@x'],
      ['event_id', '@i'],
      ['renderings', '@r'],
      ['trace_id', '@tr'],
      ['span_id', '@sp'],
    ],
  },
  { title: 'GELF', needs: ['short_message', 'timestamp'], names: [['message', 'short_message']] },
  {
    title: 'MongoDB',
    needs: ['t.$date', 's', 'c', 'msg'],
    names: [
      ['level', 's'],
      ['component', 'c'],
      ['context', 'ctx'],
      ['message', 'msg'],
    ],
  },
  {
    title: 'journald',
    needs: ['__REALTIME_TIMESTAMP'],
    names: [
      ['level', 'PRIORITY'],
      ['host', '_HOSTNAME'],
      ['program', 'SYSLOG_IDENTIFIER', '_COMM'],
      ['pid', '_PID', 'SYSLOG_PID'],
      ['unit', '_SYSTEMD_UNIT', 'UNIT'],
      ['message', 'MESSAGE'],
    ],
    byteArray: 'MESSAGE',
  },
  { title: 'PostgreSQL', needs: ['error_severity', 'timestamp'], names: [['level', 'error_severity']] },
  {
    title: 'Google Cloud',
    needs: ['timestamp', 'logName'],
    names: [
      ['level', 'severity'],
      ['message', 'textPayload', 'jsonPayload.message'],
    ],
  },
];

/** What is known about the keys of a log. */
export interface KnownKeys {
  /** Name of the program or standard. */
  readonly title?: string;
  /** Names of fields by path. */
  readonly names: ReadonlyMap<string, string>;
  /** Templates by path, for a value that has to be composed. */
  readonly templates: ReadonlyMap<string, string>;
}

/** What is known about the keys of lines, by the paths in them and the number of lines that have each. */
export function knownKeys(paths: ReadonlyMap<string, number>): KnownKeys {
  const dialect = dialects.find(({ needs }) => needs.every((path) => paths.has(path)));
  const names = new Map<string, string>();
  const templates = new Map<string, string>();
  if (dialect === undefined) return { names, templates };
  const most = Math.max(...paths.values());
  for (const [name, ...all] of dialect.names) {
    const [first, second] = all.filter((path) => paths.has(path) && !names.has(path));
    if (first === undefined) continue;
    names.set(first, name);
    if (first === dialect.byteArray) templates.set(first, `{{bytes ${partOf(first)}}}`);
    // Lines have either the one or the other.
    else if (second !== undefined && paths.get(first)! < most)
      templates.set(first, `{{or ${partOf(first)} ${partOf(second)}}}`);
  }
  return { title: dialect.title, names, templates };
}

/** A part of the line in a template. */
export function partOf(path: string): string {
  return `(index . ${JSON.stringify(path)})`;
}
