import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAgentFile, readAgentFile, readAgents } from '../../../agents/definition/agent-file.js';
import { ConfigError, formatProblem } from '../../../agents/definition/config-error.js';
import type { AgentDefinition } from '../../../agents/definition/definition.js';
import { temporaryFolder } from '../load/temporary.js';

const file = "file: { path: '/var/log/x\\.log', format: json }\n";

function parse(text: string, path = '/etc/agents/nginx.yaml'): AgentDefinition {
  return parseAgentFile(text, path);
}

/** The problems of a text, as they are printed. */
function problemsOf(text: string, path = 'agents/nginx.yaml'): string[] {
  try {
    parseAgentFile(text, path);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem);
    throw error;
  }
}

test('limits of records with several lines are read', () => {
  const multiline = (text: string) =>
    parse(`fields: [{ name: m }]\nfile: { path: '/l/a', format: json, multiline: ${text} }`).file?.multiline;
  expect(multiline("{ start: '^{' }")).toEqual({
    start: '^{',
    timeoutMs: 1000,
    linesMax: 2000,
    bytesMax: 1024 ** 2,
  });
  expect(multiline('{ start: a, timeout: 250ms, max_lines: 500, max_bytes: 64kb }')).toEqual({
    start: 'a',
    timeoutMs: 250,
    linesMax: 500,
    bytesMax: 64 * 1024,
  });
});

test('values of JSON are read whatever the lines, also those of an array at a path', () => {
  const values = (keys: string) =>
    parse(`fields: [{ name: m }]\nfile: { path: '/l/a', format: json, ${keys} }`).file?.values;
  expect(values('multiline: JSON')).toEqual({ records: [] });
  expect(values('records: a.Records')).toEqual({ records: ['a', 'Records'] });
  expect(values('multiline: json, records: x')).toEqual({ records: ['x'] });
});

test('what a container writes is read as the file says', () => {
  const read = (text: string, source = 'container.text') =>
    parse(`fields: [{ name: m, source: ${source} }]\nfile: { path: '/l/a', ${text} }`).file;
  expect(read('format: Docker')).toMatchObject({ format: 'docker', payload: 'plain' });
  expect(read('format: cri, payload: JSON', 'a.b')).toMatchObject({ format: 'cri', payload: 'json' });
  expect(read("format: cri, regex: '(?P<x>a)'", 'x')).toMatchObject({ payload: 'plain', regex: '(?P<x>a)' });
  expect(read('format: docker', 'container.attrs.com.shop/team')).toMatchObject({ format: 'docker' });
  const fields = (source: string): string => `fields: [{ name: m, source: ${source} }]\n`;
  const problem = (source: string, format: string) =>
    problemsOf(`${fields(source)}file: { path: '/l/a', format: ${format} }`)[0];
  const given = 'there are container.text, container.stream and container.time';
  const near = '(did you mean "container.stream"?)';
  expect(problem('container.attrs.tag', 'cri')).toContain(`which nothing supplies ${near}: ${given}`);
  expect(problem('container.streem', 'docker')).toContain(near);
});

test('the form of tables is read', () => {
  const table = (keys: string) => parse(`fields: [{ name: m }]\nfile: { path: '/l/a', ${keys} }`).file;
  expect(table('format: w3c')).toMatchObject({ format: 'w3c' });
  expect(table("format: csv, columns: [m, n], separator: '\\t', decimal: ','")).toMatchObject({
    format: 'csv',
    columns: ['m', 'n'],
    separator: '\t',
    decimal: ',',
  });
});

describe('a whole file', () => {
  const text = String.raw`# an agent with everything
fields:
  - name: time
    timestamp: { format: Common, timezone: Europe/Oslo }
  - name: status
    type: INT
    source: code
    description: HTTP status
  - name: seen
    type: time
  - name: message
    template: "{{.method}} {{.path}}"
    index: true
  - name: host
    index: no
file:
  path: '/var/log/nginx/access_(?P<host>.*)\.log'
  format: Plain
  regex: '^(?<method>\w+) (?P<path>[^ ]+) (?P<code>\d+) (?P<time>.*) (?P<seen>\d+)$'
  rotate: { method: Truncate, size: 10mb, run: systemctl reload nginx }
retention: { period: 7d, interval: 1h }
`;

  test('is parsed to a definition', () => {
    const agent = parse(text);
    expect(agent).toMatchObject({
      name: 'nginx',
      path: '/etc/agents/nginx.yaml',
      fields: [
        {
          name: 'time',
          type: 'time',
          source: 'time',
          timestamp: { format: 'common', timezone: 'Europe/Oslo' },
        },
        { name: 'status', type: 'int', source: 'code', description: 'HTTP status' },
        { name: 'seen', type: 'time', source: 'seen' },
        { name: 'message', type: 'string', template: '{{.method}} {{.path}}', index: true },
        { name: 'host', type: 'string', source: 'host', index: false },
      ],
      file: {
        directory: '/var/log/nginx',
        namePattern: String.raw`access_(?P<host>.*)\.log`,
        format: 'plain',
      },
      rotate: { method: 'truncate', sizeBytes: 10 * 1024 ** 2, run: 'systemctl reload nginx' },
      retention: { periodMs: 7 * 86_400_000, intervalMs: 3_600_000, bytesMax: null },
    });
    expect(agent.fields[2]!.timestamp).toBeUndefined();
    expect(agent.system).toBeUndefined();
    expect(agent.schema.fields).toEqual([
      { name: 'time', type: 'time' },
      { name: 'status', type: 'int' },
      { name: 'seen', type: 'time' },
      { name: 'message', type: 'string', index: true },
      { name: 'host', type: 'string', index: false },
    ]);
  });

  test('without a rotation size states that nothing is rotated', () => {
    expect(parse(text).notes).toEqual([]);
    const notes = parse(text.replace('size: 10mb, ', '')).notes;
    expect(notes).toEqual(['/etc/agents/nginx.yaml: file.rotate has no size, so nothing is rotated']);
  });

  test.each([
    ['/srv/(?P<app>[^/]+)/logs/.*\\.log', '/srv', ['(?P<app>[^/]+)', 'logs'], '.*\\.log'],
    ['/var/log/pods/*/*/*.log', '/var/log/pods', ['[^/]*', '[^/]*'], '.*\\.log'],
    ['/var/lib/docker/containers/*/*-json.log', '/var/lib/docker/containers', ['[^/]*'], '.*-json\\.log'],
    ['/a/b?c.d/e+f/x', '/a', ['b[^/]c\\.d', 'e\\+f'], 'x'],
    ['../l/*/./x', '/etc/l', ['[^/]*'], 'x'],
    ['*/x', '/etc/agents', ['[^/]*'], 'x'],
    ['/a\\*b/c/x', '/', ['a\\*b', 'c'], 'x'],
    ['/a/b[/c.d/x', '/a/b[/c.d', undefined, 'x'],
  ])('reads the folders of %s', (path, directory, folderPatterns, namePattern) => {
    const { file } = parse(`fields: [{ name: a }]\nfile: { path: '${path}', format: json }\n`);
    expect(file).toEqual({
      directory,
      ...(folderPatterns && { folderPatterns }),
      namePattern,
      format: 'json',
    });
  });

  test('has the captures of folders as sources', () => {
    const section = "file: { path: '/l/(?P<app>[a-z]+)/(?P<host>.*)', regex: '(?P<m>.*)' }";
    parse(`fields: [{ name: app }, { name: host }, { name: m }]\n${section}\n`);
    expect(problemsOf(`fields: [{ name: apps }]\n${section}\n`).join()).toContain('app');
  });

  test('notes a folder whose own name is the pattern', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, 'a*b'));
    const notesOf = (path: string): readonly string[] =>
      parse(`fields: [{ name: a }]\nfile: { path: '${path}', format: json }\n`, join(folder, 'x.yaml')).notes;
    expect(notesOf('a*b/x')).toEqual([
      `${folder}/x.yaml:2: "a*b" in path is a pattern for names of folders, although there is a folder with this very name; for that folder alone, write a\\*b`,
    ]);
    expect(notesOf('a\\*b/x')).toEqual([]);
    expect(notesOf('a*c/x')).toEqual([]);
  });

  test('for JSON needs no regex and accepts any source', () => {
    const agent = parse(`fields: [{name: a}, {name: b, source: "x.y-z"}]\n${file}`);
    expect(agent.file).toEqual({ directory: '/var/log', namePattern: 'x\\.log', format: 'json' });
    const logfmt = parse("fields: [{ name: m, source: a.b }]\nfile: { path: '/var/log/x', format: logfmt }");
    expect(logfmt.file?.format).toBe('logfmt');
    expect(agent.fields[1]!.source).toBe('x.y-z');
    expect(agent.notes).toEqual([]);
  });

  test('resolves a relative path against its folder, and defaults to the format plain', () => {
    const agent = parse("fields: [{name: a}]\nfile: { path: '../logs/a', regex: '(?P<a>.*)' }\n");
    expect(agent.file).toMatchObject({ directory: '/etc/logs', namePattern: 'a', format: 'plain' });
    expect(parse("fields: [{name: a}]\nfile: { path: a, regex: '(?P<a>.*)' }").file!.directory).toBe(
      '/etc/agents',
    );
  });

  test('may use anchors, merge keys, Windows line ends and a byte order mark', () => {
    const yaml = `\ufefffields:\n  - &t\n    name: a\n    type: int\n  - <<: *t\n    name: b\n${file}`;
    expect(parse(yaml.replaceAll('\n', '\r\n')).fields.map(({ name, type }) => [name, type])).toEqual([
      ['a', 'int'],
      ['b', 'int'],
    ]);
  });
});

describe('values that stay strings', () => {
  test.each([
    ['description: 123', { description: '123' }],
    ['description: 1.50', { description: '1.50' }],
    ['description: true', { description: 'true' }],
    ['description: 2026-11-21', { description: '2026-11-21' }],
    ['source: 0x1F', { source: '0x1F' }],
    ['template: 007', { template: '007' }],
    ['description: !!str 5', { description: '5' }],
    ["description: 'null'", { description: 'null' }],
    ['description: |\n      two\n      lines', { description: 'two\nlines\n' }],
  ])('%s', (line, expected) => {
    expect(parse(`fields:\n  - name: a\n    ${line}\n${file}`).fields[0]).toMatchObject(expected);
  });

  test('a regex and a zone that YAML would read as numbers', () => {
    expect(parse('fields: [{name: m, template: x}]\nfile: { path: 123, regex: 456 }').file).toMatchObject({
      namePattern: '123',
      regex: '456',
    });
    const zoned = parse(`fields: [{name: t, timestamp: {format: stamp, timezone: +02:00}}]\n${file}`);
    expect(zoned.fields[0]!.timestamp).toEqual({ format: 'stamp', timezone: '+02:00' });
  });

  test('a key without a value counts as absent', () => {
    const agent = parse(
      `fields:\n  - name: a\n    type:\n    timestamp: ~\n    description: null\nretention:\n${file}`,
    );
    expect(agent.fields).toEqual([{ name: 'a', type: 'string', source: 'a' }]);
    expect(agent.retention).toBeUndefined();
  });
});

describe('definitions of the public service', () => {
  test('older names are accepted with a note', () => {
    const agent = parse(
      "fields: [{name: time, time_format: Common}]\nfile: {path: a, regex: '(?P<time>.*)', rotate: {method: RENAME, max_size: 1KB, run: x}}",
    );
    expect(agent.fields[0]).toMatchObject({ type: 'time', timestamp: { format: 'common' } });
    expect(agent.rotate).toEqual({ method: 'rename', sizeBytes: 1024, run: 'x' });
    expect(agent.notes.join('\n')).toContain('time_format is the older way');
  });

  test.each([
    ['1d 14h', (24 + 14) * 3_600_000],
    ['2D3H', (48 + 3) * 3_600_000],
    ['90m', 90 * 60_000],
    ['86400', 86_400_000],
    ['never', null],
    ['Never', null],
  ])('a period of %s', (period, periodMs) => {
    expect(parse(`fields: [{name: a}]\n${file}retention: { period: ${period} }`).retention).toEqual({
      periodMs,
      intervalMs: 3_600_000,
      bytesMax: null,
      graceMs: 86_400_000,
    });
  });

  test('without a period, records are never removed', () => {
    expect(parse(`fields: [{name: a}]\n${file}retention: { interval: 10m }`).retention).toEqual({
      periodMs: null,
      intervalMs: 600_000,
      bytesMax: null,
      graceMs: 86_400_000,
    });
    expect(parse(`fields: [{name: a}]\n${file}rejected: { max_bytes: 2gb }`).rejectedBytesMax).toBe(
      2 * 1024 ** 3,
    );
    expect(parse(`fields: [{name: a}]\n${file}`).rejectedBytesMax).toBeUndefined();
    expect(parse(`fields: [{name: a}]\n${file}retention: { max_bytes: 2gb }`).retention).toEqual({
      periodMs: null,
      intervalMs: 3_600_000,
      bytesMax: 2 * 1024 ** 3,
      graceMs: 86_400_000,
    });
    expect(parse(`fields: [{name: a}]\n${file}retention: { grace: 0s }`).retention).toMatchObject({
      graceMs: 0,
    });
  });

  test('a type next to a timestamp is ignored', () => {
    const agent = parse(`fields: [{name: t, type: string, timestamp: {}}]\n${file}`);
    expect(agent.fields[0]).toMatchObject({ type: 'time', timestamp: { format: 'rfc3339' } });
    expect(agent.notes[0]).toContain('"type: string" is not used');
  });

  test('an agent of the system has its own fields', () => {
    const agent = parse('system: { interval: 10s, disk_path: /var/lib }');
    expect(agent.system).toEqual({ intervalMs: 10_000, disk: { path: '/var/lib' } });
    expect(agent.file).toBeUndefined();
    expect(agent.schema.fields.map((field) => field.name)).toEqual(
      'time uptime la_1 la_5 la_15 cpu_usage cpu_cores mem_usage mem_total disk_dev disk_usage disk_total disk_read_bytes disk_write_bytes'.split(
        ' ',
      ),
    );
    const whole = parse('system: { disk: { path: / }, net: {} }');
    expect(whole.schema.fields).toHaveLength(23);
    expect(whole.system).toEqual({ intervalMs: 60_000, disk: { path: '/' }, net: { interface: 'default' } });
    expect(parse('fields: [{name: load, source: la_1, type: float}]\nsystem: {}').fields).toHaveLength(1);
    expect(agent.notes).toEqual([
      '/etc/agents/nginx.yaml: system.disk_path is the older way to write "disk: { path: /var/lib }"',
    ]);
    expect(parse('system: { disk: { path: ../var } }').system?.disk).toEqual({ path: '/etc/var' });
  });

  test('the time of system figures has no format', () => {
    const agent = parse('fields: [{name: at, source: time, timestamp: {}}]\nsystem: {}');
    expect(agent.fields).toEqual([{ name: 'at', type: 'time', source: 'time' }]);
    expect(agent.notes[0]).toContain('the timestamp of "at" is ignored');
  });
});

describe('problems', () => {
  test.each([
    [
      'fields:\n  - name: a\n    tpye: int\n',
      ':3:5: unknown key "tpye" (did you mean "type"?): a field has name, type',
    ],
    [
      'fields:\n  - name: a\n    type: integer\n',
      ':3:11: type must be int, float, string, time or bool, not "integer"',
    ],
    ['fields:\n  - name: a\n    type: [int]\n', ':3:11: type must be a text, not a list'],
    ['fields:\n  - name: Status\n', ':2:11: field name "Status" must have only lowercase'],
    ['fields:\n  - name: a__b\n', ':2:11: field name "a__b" must not contain "__"'],
    [
      'fields:\n  - name: a\n  - name: b\n  - name: a\n',
      ':4:11: the field "a" is defined twice; it is already defined on line 2',
    ],
    ['fields:\n  - type: int\n', ':2:5: name is missing'],
    ['fields:\n  - name:\n', ':2:5: name is missing'],
    ['fields:\n  - a\n', ':2:5: a field must be a mapping with name'],
    ['fields: a\n', ':1:9: fields must be a list, not "a"'],
    ['fields: []\n', ':1:9: fields is empty'],
    ['fields:\n  - name: a\n    index: maybe\n', ':3:12: index must be true, false or full, not "maybe"'],
    [
      'fields:\n  - name: a\n    type: float\n    index: true\n',
      ':4:12: index is only for fields of type string or int',
    ],
    ['fields:\n  - name: t\n    timestamp: { format: iso8601 }\n', ':3:26: unknown time format "iso8601"'],
    [
      'fields:\n  - name: t\n    timestamp: { fromat: unix }\n',
      ':3:18: unknown key "fromat" (did you mean "format"?)',
    ],
    [
      'fields:\n  - name: t\n    timestamp: { timezone: Europe/Olso }\n',
      ':3:28: unknown time zone "Europe/Olso"',
    ],
    ['fields:\n  - name: t\n    timestamp: unix\n', ':3:16: timestamp must be a mapping'],
    ["fields:\n  - name: m\n    template: '{{.a'\n", ':3:15: template, character 1: the action is not'],
    ['fields:\n  - name: a\n    name: b\n', ':3:5: the key "name" is given twice; it is already on line 2'],
    ['fields:\n  - name: *x\n', ':2:11: no anchor "&x" is defined before this alias'],
    ['fields:\n  - name: !secret a\n', ':2:11: the tag "!secret" is not supported'],
    ['fields: [{name: a}]\nretention: { period: 0 }\n', ':2:22: period must be never, or a duration'],
    [
      'fields: [{name: level}]\nretention:\n  rules:\n    - where: { lvel__in: [a, b] }\n      period: 3d\n',
      ':4:26: unknown field "lvel" in filter "lvel__in" (did you mean "level"?). The fields are level',
    ],
    [
      'fields: [{name: n, type: int}]\nretention: { rules: [{ where: { n__gt: [1, 2] }, period: 3d }] }\n',
      ':2:40: n__gt takes one value; n__in takes a list',
    ],
    [
      'fields: [{name: n, type: int}]\nretention: { rules: [{ where: { n__gt: x }, period: 3d }] }\n',
      ':2:40: the value of "n__gt" must be a decimal integer, not "x"',
    ],
    [
      'fields: [{name: t, timestamp: {}}]\nretention: { rules: [{ where: { t__since: 3d }, period: 3d }] }\n',
      ':2:43: the age of records is the "period" of the rule, not t__since',
    ],
    [
      "fields: [{name: a}]\nretention: { rules: [{ where: { '*__like': x }, period: 3d }] }\n",
      ':2:44: a rule names the field that it looks at, which "*" does not',
    ],
    [
      'fields: [{name: a}]\nretention: { period: 2d, rules: [{ where: { a__exact: x }, period: 3d }] }\n',
      ':2:68: period must be shorter than retention.period',
    ],
    ['fields: [{name: a}]\nretention: { rules: [{ period: 3d }] }\n', ':2:22: where is missing'],
    [
      'fields: [{name: a}]\nretention: { rules: [{ where: { a__exact: x } }] }\n',
      ':2:22: period is missing: how long the records are kept',
    ],
    ['fields: [{name: a}]\nretention: { interval: -1h }\n', ':2:24: interval must be a duration'],
    ['fields: [{name: a}]\nrejected: { max_bytes: much }\n', ':2:24: max_bytes must be a size'],
    ['fields: [{name: a}]\nrejected: { max: 1mb }\n', 'unknown key "max"'],
    ['fields: [{name: a}]\nretention: { max_bytes: much }\n', ':2:25: max_bytes must be a size such as'],
    [
      'fields: [{name: a}]\ncolour: red\n',
      ':2:1: unknown key "colour": the file has archive, fields, file, rejected, retention and system',
    ],
    ['fields: [{name: a}]\nsystem: {}\n', 'an agent has "file" or "system", not both'],
  ])('%j: %s', (text, expected) => {
    // `file` is the last key, so that it does not change line numbers.
    const problems = problemsOf(text + file);
    expect(problems.map((problem) => problem.replace('agents/nginx.yaml', '')).join('\n')).toContain(
      expected,
    );
  });

  test.each([
    [
      "{ path: '/l/a', regex: '^(?P<a>\\d+$' }",
      ":2:30: regex is not a regular expression in Go's (RE2) syntax: missing closing )",
    ],
    ["{ path: '/l/a', regex: '(?P<a>x)(?=y)' }", 'invalid or unsupported Perl syntax: `(?=`'],
    ["{ path: '/l/a', regex: '(?P<a>x)(?P<a>y)' }", 'duplicate capture group name: `a`'],
    ["{ path: '/l/(a', regex: '(?P<a>x)' }", ":2:15: path is not a regular expression in Go's (RE2) syntax"],
    ["{ path: '/l/', regex: '(?P<a>x)' }", ':2:15: path must end with an expression for file names'],
    [
      "{ path: '/l*/../a', regex: '(?P<a>x)' }",
      'path must not have ".." after the first folder that is a pattern',
    ],
    ["{ path: '/(?P<a>x/a', regex: '(?P<b>x)' }", ':2:15: path is not a regular expression'],
    ["{ path: '/(?P<a>x)/(?P<a>y)', regex: '(?P<b>x)' }", ':2:15: path captures a more than once'],
    ["{ regex: '(?P<a>x)' }", ':2:7: path is missing'],
    ["{ path: '/l/a' }", ':2:7: regex is missing: the format plain needs a regex'],
    ["{ path: '/l/a', format: json, regex: x }", 'only for the format plain; lines of json name their'],
    [
      "{ path: '/l/a', format: logfmt, regex: x }",
      'regex is only for the format plain; lines of logfmt name their',
    ],
    [
      "{ path: '/l/a', format: json, payload: json }",
      ':2:46: payload is only for the formats docker and cri',
    ],
    [
      "{ path: '/l/a', format: docker, payload: xml }",
      ':2:48: payload must be plain, json or logfmt, not "xml"',
    ],
    [
      "{ path: '/l/a', format: cri, payload: json, regex: x }",
      'regex is only for the format plain; lines of json name their',
    ],
    [
      "{ path: '/l/a', format: xml }",
      ':2:31: format must be plain, json, logfmt, otlp, docker, cri, csv, tsv or w3c, not "xml"',
    ],
    ["{ path: '/l/a', format: w3c, regex: x }", 'only for the format plain; lines of w3c name their'],
    [
      "{ path: '/l/a', format: json, columns: [a] }",
      ':2:46: columns is only for the format csv and tsv; other',
    ],
    ["{ path: '/l/a', format: tsv, separator: ';' }", 'separator is only for the format csv; tsv has tabs'],
    [
      "{ path: '/l/a', format: tsv, decimal: ',' }",
      'decimal is only for the format csv; other formats write',
    ],
    ["{ path: '/l/a', format: csv, decimal: ',' }", "decimal is also the separator: add separator: ';'"],
    ["{ path: '/l/a', format: csv, decimal: '|' }", 'decimal must be , or ., not "|"'],
    ["{ path: '/l/a', format: csv, separator: '||' }", 'separator must be one ASCII character, such as'],
    ["{ path: '/l/a', format: csv, columns: [] }", 'columns is empty: name at least one'],
    ["{ path: '/l/a', format: csv, columns: [a, b, a] }", 'columns has "a" twice'],
    ["{ path: '/l/a', format: csv, columns: [b] }", 'reads "a", which nothing supplies'],
    [
      "{ path: '/l/a', format: csv, multiline: { start: a } }",
      'multiline is not for tables; in csv, quotation',
    ],
    [
      "{ path: '/l/a', format: json, multiline: { timeout: 1s } }",
      'start is missing: an expression that finds',
    ],
    ["{ path: '/l/a', format: json, multiline: { start: '(' } }", 'start is not a regular expression in Go'],
    [
      `{ path: '/l/a', regex: '${'.{0,1000}'.repeat(40)}(?P<a>x)' }`,
      'regex is too large: with its repetitions written out it has 80005 instructions, more than 65536',
    ],
    [
      `{ path: '/l/a', format: json, multiline: { start: '${'.{0,1000}'.repeat(10)}' } }`,
      'start is too large: with its repetitions written out it has 20002 instructions, more than 1627',
    ],
    ["{ path: '/l/a', format: logfmt, multiline: json }", 'multiline: json is only for the format json'],
    ["{ path: '/l/a', format: json, skip: '(' }", 'skip is not a regular expression in Go'],
    ["{ path: '/l/a', format: json, mask: ['a', ')'] }", 'mask is not a regular expression in Go'],
    ["{ path: '/l/a', format: json, mask: [] }", 'mask must be a pattern, or a list of them'],
    ["{ path: '/l/a', format: json, encoding: utf-16 }", 'encoding must be utf-16le, utf-16be, latin1 or'],
    ["{ path: '/l/a', format: json, strip: colors }", 'strip must be ansi, not "colors"'],
    ["{ path: '/l/a', format: json, trim: much }", 'trim must be true or false'],
    ["{ path: '/l/a', format: json, otherwise: rest }", 'otherwise is "rest", which no field reads'],
    ["{ path: '/l/a', format: otlp, records: a }", 'records is only for the format json'],
    ["{ path: '/l/a', format: json, records: a..b }", 'records must be a key, or keys joined by dots'],
    [
      "{ path: '/l/a', format: json, records: a, multiline: { start: a } }",
      'multiline can only be json where',
    ],
    ["{ path: '/l/a', format: otlp, multiline: { start: a } }", 'multiline is not for the format otlp'],
    ["{ path: '/l/a', format: json, multiline: '^a' }", 'multiline must be a mapping with start, timeout,'],
    ["{ path: '/l/a', format: json, multiline: { start: a, timeout: 2h } }", 'timeout must be a duration'],
    [
      "{ path: '/l/a', format: json, multiline: { start: a, max_lines: 0 } }",
      'max_lines must be a whole number',
    ],
    ["{ path: '/l/a', format: json, multiline: { start: a, max_bytes: 2mb } }", 'at most 1mb, not "2mb"'],
    ["{ path: '/l/a', format: json, multiline: { begin: a } }", 'unknown key "begin"'],
    ["{ path: '/l/a', format: json, rotate: { size: 10tb } }", 'size must be a size such as 512kb'],
    ["{ path: '/l/a', format: json, rotate: { size: 1kb } }", 'method is missing'],
    [
      "{ path: '/l/a', format: json, rotate: { method: copy } }",
      'method must be truncate or rename, not "copy"',
    ],
    [
      "{ path: '/l/a', format: json, rotate: { method: rename, size: 1, max_size: 1 } }",
      'max_size is the old name of size',
    ],
  ])('file: %s', (section, expected) => {
    expect(problemsOf(`fields: [{name: a}]\nfile: ${section}\n`).join('\n')).toContain(expected);
  });

  test.each([
    ['{ interval: 10ms }', ':1:21: interval must be a duration'],
    ['{ interval: 1d, memory: yes }', 'unknown key "memory": system has interval, disk, net and disk_path'],
    ['{ disk: / }', ':1:17: disk must be a mapping with path, not "/"'],
    ['{ disk: { path: / }, disk_path: / }', 'disk_path is the old name of disk.path'],
    ['{ net: { if: eth0 } }', 'unknown key "if"'],
  ])('system: %s', (section, expected) => {
    expect(problemsOf(`system: ${section}\n`).join('\n')).toContain(expected);
  });

  test('a source that names a figure that does not exist', () => {
    const text = 'fields: [{name: load, source: la_2}]\nsystem: {}\n';
    expect(problemsOf(text).join()).toContain('the field "load" reads "la_2", which nothing supplies');
    const withoutDisk = 'fields: [{name: disk_usage, type: float}]\nsystem: {}\n';
    expect(problemsOf(withoutDisk).join()).toContain('reads "disk_usage", which nothing supplies');
  });

  test('a source that nothing supplies, with a list of the existing captures', () => {
    const text =
      "fields:\n  - name: a\n  - name: b\n    source: cdoe\n  - name: host\nfile: { path: '/l/(?P<host>.)', regex: '(?P<a>x)(?<code>y)' }";
    expect(problemsOf(text)).toEqual([
      'agents/nginx.yaml:4:13: the field "b" reads "cdoe", which nothing supplies (did you mean "code"?): there are a, code and host',
    ]);
  });

  test('only a note for a template that names a missing field', () => {
    const agent = parse(
      "fields:\n  - name: m\n    template: '{{.a}}{{.aa}}'\nfile: { path: l, regex: '(?P<a>x)' }",
    );
    expect(agent.notes).toEqual([
      '/etc/agents/nginx.yaml:3: the template of "m" uses "aa", which nothing supplies (did you mean "a"?); it is always empty',
    ]);
  });

  test('of one file are all reported at once, in its order', () => {
    const text =
      "fields:\n  - name: A\n    tpye: int\n  - name: b\n    type: x\nfile:\n  path: '('\n  format: y\n  regex: '['\nzzz: 1\n";
    expect(problemsOf(text).map((problem) => problem.split(':').slice(1, 3).join(':'))).toEqual([
      '2:11',
      '3:5',
      '5:11',
      '7:9',
      '8:11',
      '9:10',
      '10:1',
    ]);
  });

  test.each([
    [
      'fields: [a\nfile: b',
      /:2:1: this is not valid YAML: a bracket or a quotation mark above this line is not closed, or/,
    ],
    [
      'fields: [\n',
      /:2:1: this is not valid YAML: a bracket or a quotation mark above this line is not closed, or/,
    ],
    ['fields:\n\t- name: a', /:2:1: this is not valid YAML: tab/],
    ['"abc', /:1:\d+: this is not valid YAML: /],
    ['file:\n  regex: "^(?P<a>\\d+)"', /:2:\d+: this is not valid YAML: .*put patterns into single quotes/],
    ['file:\n  regex: "\\x1z"', /:2:\d+: this is not valid YAML: .*put patterns into single quotes/],
    [
      '- a\n- b',
      /:1:1: the file must be a mapping with archive, fields, file, rejected, retention and system, not a list/,
    ],
    ['a: 1\n---\nb: 2', /:3:1: a second YAML document begins here/],
    ['? [a]\n: b', /:1:3: a key must be a word/],
    ['', /:1:1: fields is missing/],
    ['# nothing\n', /:1:1: file is missing/],
    [`x: ${'['.repeat(60)}${']'.repeat(60)}`, /this is not valid YAML: /],
  ])('of syntax: %j', (text, expected) => {
    expect(problemsOf(text).join('\n')).toMatch(expected);
  });

  test.each(['a b.yaml', '_x.yaml', `${'n'.repeat(129)}.yaml`])(
    'a name that no agent can have: %s',
    (name) => {
      expect(problemsOf(`fields: [{name: a}]\n${file}`, `agents/${name}`).join()).toContain(
        ':1:1: the name of the file is the name of the agent',
      );
    },
  );
});

describe('a folder', () => {
  let folder = '';
  const good = `fields: [{name: a}]\n${file}`;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'logstrata-agents-'));
    const write = (name: string, content: string | Buffer): void =>
      writeFileSync(join(folder, name), content);
    write('b.yaml', good);
    write('a.yml', good);
    write('loader.ts', 'export {};');
    write('notes.txt', 'x');
    write('.hidden.yaml', ':');
    mkdirSync(join(folder, 'folder.yaml'));
    symlinkSync(join(folder, 'b.yaml'), join(folder, 'linked.yaml'));
    write('broken.yaml', 'fields: [');
    write('twice.yaml', good);
    write('twice.yml', good);
    write('latin.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xe9]));
    write('long.yaml', `#${'x'.repeat(1024 * 1024)}`);
    symlinkSync(join(folder, 'gone.yaml'), join(folder, 'dangling.yaml'));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  test('returns its agents by name, and the problems of the others', () => {
    const { agents, problems } = readAgents(folder);
    expect(agents.map((agent) => agent.name)).toEqual(['a', 'b', 'linked']);
    const said = problems.map((problem) => formatProblem(problem).replace(`${folder}/`, ''));
    expect(said.map((problem) => problem.split(':')[0])).toEqual([
      'broken.yaml',
      'dangling.yaml',
      'latin.yaml',
      'long.yaml',
      'twice.yaml',
      'twice.yml',
    ]);
    expect(said[1]).toContain('is not there');
    expect(said[2]).toContain('the file is not UTF-8');
    expect(said[3]).toContain('more than 1048576 bytes, the maximum for a configuration');
    expect(said[4]).toContain('twice.yaml and twice.yml both define the agent "twice"');
  });

  test('that is missing, or not a folder, is reported', () => {
    expect(() => readAgents(join(folder, 'nope'))).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(() => readAgents(join(folder, 'nope'))).toThrow(/nope is not there: "logstrata agent new/);
    expect(() => readAgents(join(folder, 'b.yaml'))).toThrow(/is not a folder/);
    symlinkSync('loop', join(folder, 'loop'));
    expect(() => readAgents(join(folder, 'loop'))).toThrow(/^cannot list the agents folder .*loop: ELOOP$/);
    expect(() => readAgentFile(join(folder, 'nope.yaml'))).toThrow(
      expect.objectContaining({ code: 'not_found' }),
    );
  });
});
