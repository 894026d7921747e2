import { describe, expect, test } from 'vitest';
import { parseAgentFile } from '../../../agents/definition/agent-file.js';
import { ConfigError, formatProblem } from '../../../agents/definition/config-error.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';

function parse(text: string): AgentDefinition {
  return parseAgentFile(text, '/etc/agents/web.yaml', '/srv/store');
}

function problemsOf(text: string): string[] {
  try {
    parse(text);
    return [];
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map((problem) => formatProblem(problem).replace('/etc/agents/web.yaml:', ''));
    throw error;
  }
}

const message = 'fields: [{ name: message }]\n';

describe('the archive of an agent', () => {
  test('reads Parquet and Arrow files in place, as their extensions say, and needs no fields', () => {
    const { archive, fields } = parse(
      "archive: { path: ['a/*.parquet', '/b/**/*.FEATHER', c.arrows, d.arrow, e.ipc] }",
    );
    expect(archive).toEqual({
      folder: '/etc/agents',
      globs: [
        { glob: 'a/*.parquet', format: 'parquet' },
        { glob: '/b/**/*.FEATHER', format: 'arrow' },
        { glob: 'c.arrows', format: 'arrow' },
        { glob: 'd.arrow', format: 'arrow' },
        { glob: 'e.ipc', format: 'arrow' },
      ],
      mode: 'in-place',
      changed: 'fail',
      missing: 'fail',
      infersFields: true,
      place: { line: 1, column: 10 },
    });
    expect(fields).toEqual([]);
  });

  test('names objects by their bucket, and may combine them with files', () => {
    const { archive } = parse(
      "archive: { path: ['s3://lake/day=*/*.parquet', 'a/*.parquet', 's3://lake/b.arrow'] }",
    );
    expect(archive!.globs).toEqual([
      { glob: 's3://lake/day=*/*.parquet', format: 'parquet' },
      { glob: 'a/*.parquet', format: 'parquet' },
      { glob: 's3://lake/b.arrow', format: 'arrow' },
    ]);
    const problem = (path: string): string | undefined =>
      problemsOf(`archive: { path: '${path}', format: json }\n${message}`)[0];
    expect(problem('s3://*/a.json')).toContain('path must name one bucket, as in s3://bucket/');
    expect(problem('s3:///a.json')).toContain('path must name one bucket');
    expect(problem('s3://lake')).toContain('path names a bucket but no objects');
    expect(problem('gs://lake/a.json')).toContain('name objects as s3://bucket/key');
  });

  test('may state a format, which then applies to all names', () => {
    const { archive } = parse(
      'archive: { path: /a/*, format: Parquet, mode: in-place, changed: replace, missing: retire }',
    );
    expect(archive).toMatchObject({
      globs: [{ glob: '/a/*', format: 'parquet' }],
      changed: 'replace',
      missing: 'retire',
    });
  });

  test('stores Parquet and Arrow files on demand, with the same fields', () => {
    const { archive, schema } = parse(
      "archive: { path: '/a/*.parquet', mode: import }\nfields: [{ name: at, source: '@timestamp', unit: us }]",
    );
    expect(archive).toMatchObject({
      globs: [{ glob: '/a/*.parquet', format: 'parquet' }],
      mode: 'import',
      infersFields: false,
    });
    expect(schema.fields).toEqual([
      { name: 'at', type: 'time', attached: { column: '@timestamp', unit: 'us' } },
    ]);
    expect(parse("archive: { path: '/a/*.arrow', mode: import }").archive!.infersFields).toBe(true);
  });

  test('stores text files, which are read as the archive states', () => {
    const { archive, file } = parse(
      `${message}archive: { path: '/a/*.gz', format: plain, regex: '^(?P<message>.*)$', multiline: { start: '^x' } }`,
    );
    expect(file).toBeUndefined();
    expect(archive).toMatchObject({
      globs: [{ glob: '/a/*.gz', format: 'lines' }],
      mode: 'import',
      lines: { format: 'plain', regex: '^(?P<message>.*)$', multiline: { start: '^x' } },
      infersFields: false,
    });
  });

  test('reads text like the lines that the agent follows, if it follows any', () => {
    const { archive, file } = parse(
      `${message}file: { path: '/l/.*', format: json }\narchive: { path: '/a/*.gz', mode: import }`,
    );
    expect(file?.format).toBe('json');
    expect(archive).toMatchObject({ globs: [{ glob: '/a/*.gz', format: 'lines' }], mode: 'import' });
    expect(archive?.lines).toBeUndefined();
  });
});

describe('fields of files that are read in place', () => {
  const inPlace = "archive: { path: '/a/*.parquet' }\n";

  test('have larger filters for strings', () => {
    const withIndex = (type: string): string => `${inPlace}fields: [{ name: a, type: ${type}, index: full }]`;
    expect(parse(withIndex('string')).schema.fields).toEqual([{ name: 'a', type: 'string', index: 'full' }]);
    const [problem, ...others] = problemsOf(withIndex('int'));
    expect(problem).toContain('index: full is only for fields of type string, but "a" is of type int');
    expect(others).toEqual([]);
  });

  test('name columns, with units for times that are numbers', () => {
    const { schema, fields } = parse(
      `${inPlace}fields: [{ name: at, source: '@timestamp', unit: US }, { name: seen, type: time, timestamp: { format: unix } }, { name: user_id, type: int, source: UserID, index: true }, { name: plain }]`,
    );
    expect(fields[0]).toMatchObject({ type: 'time', unit: 'us' });
    expect(schema.fields).toEqual([
      { name: 'at', type: 'time', attached: { column: '@timestamp', unit: 'us' } },
      { name: 'seen', type: 'time', attached: { column: 'seen', unit: 's' } },
      { name: 'user_id', type: 'int', index: true, attached: { column: 'UserID' } },
      { name: 'plain', type: 'string' },
    ]);
  });

  test('are filled from the column of their name even if they have a template, also in an agent that follows lines', () => {
    const { schema, notes } = parse(
      `${inPlace}file: { path: '/l/.*', format: json }\nfields: [{ name: t, source: x, template: '{{.a}}' }, { name: b, source: c }]`,
    );
    expect(schema.fields).toEqual([
      { name: 't', type: 'string' },
      { name: 'b', type: 'string', attached: { column: 'c' } },
    ]);
    expect(notes.join()).toContain(
      'the template of "t" is used only for lines; from Parquet and Arrow files the field reads the column "t"',
    );
  });
});

test('are filled from folders of the archive in addition to lines', () => {
  const regex = "format: plain, regex: '^(?P<message>.*)$'";
  const fields = 'fields: [{ name: message }, { name: region }]\n';
  expect(problemsOf(`${fields}archive: { path: '/a/region=*/*.log', ${regex} }`)).toEqual([]);
  expect(problemsOf(`${fields}archive: { path: '/a/**/*.log', ${regex} }`)).toEqual([]);
  expect(problemsOf(`${fields}archive: { path: '/a/*/*.log', ${regex} }`)).toEqual([
    '1:37: the field "region" reads "region", which nothing supplies: there are message',
  ]);
});

describe('problems', () => {
  test.each([
    [`${message}archive: { format: json }`, '2:10: path is missing: the files, by a pattern'],
    [`${message}archive: { path: [], format: json }`, '2:18: path is an empty list: name at least one file'],
    [`${message}archive: { path: /a/, format: json }`, '2:18: path must end with a pattern for file names'],
    [
      `${message}archive: { path: '/srv/(?P<a>.*)/b', format: json }`,
      '2:18: path is a glob, which has no captures',
    ],
    [
      `${message}archive: { path: '!a', format: json }`,
      '2:18: path can\'t exclude files: "!a" begins with "!"',
    ],
    [
      `${message}archive: { path: /srv/store/*, format: json }`,
      '2:18: path is inside the data folder /srv/store: ',
    ],
    [
      `${message}archive: { path: '/a/*.log' }`,
      '2:10: format is missing: parquet, arrow, delta, iceberg, plain, json, logfmt, otlp, docker, cri, csv, tsv or w3c; names that end with .parquet, .arrow, .arrows, .feather or .ipc need no format',
    ],
    [
      `archive: { path: /a, format: parqet }`,
      ':30: format must be parquet, arrow, delta, iceberg, plain, json, logfmt, otlp, docker, cri, csv, tsv or w3c, not "parqet" (did you mean',
    ],
    [
      `archive: { path: /a.parquet, colour: red }`,
      ':30: unknown key "colour": archive has path, format, version, snapshot, mode',
    ],
    [
      `${message}archive: { path: [/a.parquet, /b.log], format: }\nfile: { path: /l/x, format: json }`,
      '2:18: path mixes Parquet or Arrow files with text files: make two agents of it',
    ],
    [
      `${message}archive: { path: /a.log, format: json, mode: in-place }`,
      'in-place is only for Parquet and Arrow files. Lines of text must be stored: mode: import',
    ],
    [
      `archive: { path: /a.parquet, mode: import, changed: replace }`,
      'changed is only for files that are queried in place; imported records are stored and do not change',
    ],
    [`archive: { path: /a.parquet, mode: copy }`, 'mode must be in-place or import, not "copy"'],
    [`archive: { path: /a.parquet, changed: retire }`, 'changed must be fail or replace, not "retire"'],
    [`archive: { path: /a.parquet, missing: replace }`, 'missing must be fail or retire, not "replace"'],
    [
      `${message}archive: { path: /a, format: json, missing: retire }`,
      'missing is only for files that are queried in place',
    ],
    [
      `archive: { path: /a.parquet, regex: x }`,
      'regex is only for lines of text, but these files have columns',
    ],
    [`${message}archive: { path: /a, format: plain }`, 'regex is missing: the format plain needs a regex'],
    [`${message}archive: { path: /a, format: json, regex: x }`, 'regex is only for the format plain'],
    [
      `${message}file: { path: /l/x, format: json }\narchive: { path: /a, format: logfmt }`,
      '3:30: file.format (json) also applies to the lines of the archive: remove format here',
    ],
    [
      `${message}file: { path: /l/x, format: json }\narchive: { path: /a, regex: y, format: json }`,
      '"file" already says how to parse lines: remove regex here',
    ],
    [`archive: { path: /a.parquet }\nsystem: {}`, 'an agent has "archive" or "system", not both'],
    [`archive: { path: /a, format: json }`, 'fields is missing'],
    [`file: { path: /l/x, format: json }\narchive: { path: /a.parquet }`, 'fields is missing'],
    [
      'fields: [{ name: at, type: time }, { name: seen, type: time }]\narchive: { path: /a.parquet, time: seen }',
      '2:36: time must be the first field of type time, which is "at": move "seen" before it',
    ],
    [
      'fields: [{ name: at, type: time }, { name: n, type: int }]\narchive: { path: /a.parquet, time: n }',
      'time must name a field of type time, but "n" is of type int',
    ],
    [
      'fields: [{ name: stamp, type: time }]\narchive: { path: /a.parquet, time: stmp }',
      'time names no field (did you mean "stamp"?): the fields of type time are stamp',
    ],
    [
      'fields: [{ name: at, type: time, unit: m }]\narchive: { path: /a.parquet }',
      'unit must be s, ms, us or ns',
    ],
    [
      'fields: [{ name: at, type: int, unit: ms }]\narchive: { path: /a.parquet }',
      'unit is only for fields of type time',
    ],
    [
      'fields: [{ name: at, type: time, unit: ms }]\nfile: { path: /l/x, format: json }',
      'unit is only for numeric times in Parquet and Arrow files (archive)',
    ],
    [
      'fields: [{ name: at, timestamp: { timezone: Europe/Oslo } }]\narchive: { path: /a.parquet }',
      '1:45: timezone is only for lines: times without a zone in Parquet and Arrow files are taken as UTC',
    ],
    [
      'fields: [{ name: at, timestamp: { timezone: +02:00 } }]\narchive: { path: /a.arrow, mode: import }',
      'timezone is only for lines',
    ],
    [
      "fields: [{ name: at, template: '{{.a}}' }]\narchive: { path: /a.parquet }",
      'a template uses the parts of a line, which Parquet and Arrow files do not have',
    ],
  ])('%s', (text, expected) => {
    expect(problemsOf(text).join('\n')).toContain(expected);
    expect(problemsOf(text)).toHaveLength(1);
  });
});

test('a time zone is for lines: of an agent that also has columns a note says so, and UTC changes nothing', () => {
  const notesOf = (zone: string, more: string): readonly string[] =>
    parseAgentFile(
      `fields: [{ name: at, timestamp: { timezone: ${zone} } }]\n${more}`,
      '/etc/agents/web.yaml',
    ).notes;
  const columns = 'archive: { path: /a.parquet }\n';
  const lines = 'file: { path: /l/x, format: json }\n';
  expect(notesOf('Europe/Oslo', columns + lines)).toEqual([
    '/etc/agents/web.yaml:1: timezone is used only for lines; times without a zone in Parquet and Arrow files are taken as UTC',
  ]);
  expect(notesOf('utc', columns)).toEqual([]);
  expect(notesOf('Europe/Oslo', lines)).toEqual([]);
});
