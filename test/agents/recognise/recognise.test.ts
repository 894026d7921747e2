import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { parseAgentFile } from '../../../agents/definition/agent-file.js';
import { recognise } from '../../../agents/recognise/recognise.js';
import { root } from '../../tidy/source-files.js';
import { logs } from './logs.js';
import { fieldsOf, firstOf, recognised, sampleOf, settings } from './recognised.js';

const access = 'remote_addr remote_user method path protocol request status:int bytes:int';
const plainTime = '2006-01-02 15:04:05';

/** For each log its title, its records and its fields: every line belongs to a record, and every value can be read. */
const expected: Readonly<Record<string, readonly [title: string, records: number, fields: string]>> = {
  haproxy: [
    'HAProxy',
    3,
    'time:stamp host program pid:int remote_addr remote_port:int time_accepted:02/Jan/2006:15:04:05 frontend backend server ' +
      'request_ms:int queue_ms:int connect_ms:int response_ms:int total_ms:int status:int bytes:int request_cookie response_cookie ' +
      'termination connections queues captured method path protocol request message',
  ],
  alb: [
    'Amazon load balancer log',
    2,
    'time:rfc3339 type balancer remote_addr remote_port:int target request_seconds:float target_seconds:float response_seconds:float ' +
      'status:int target_status:int received_bytes:int bytes:int method path protocol request user_agent tls_cipher tls_version ' +
      'target_group trace_id extra',
  ],
  envoy: [
    'Envoy',
    2,
    'time:rfc3339 method path protocol request status:int flags details termination transport_failure received_bytes:int bytes:int ' +
      'duration_ms:int upstream_ms:int forwarded_for user_agent request_id authority upstream extra',
  ],
  asa: ['Cisco', 2, 'time:Jan _2 2006 15:04:05 priority:int facility severity:int mnemonic:int message'],
  auditd: ["Linux's audit log", 2, 'time:unix type serial:int message'],
  pybasic: ["Python's logging without times", 2, 'level logger message'],
  rsyslog: ['syslog with full times', 3, 'time:rfc3339 host program pid:int message'],
  tracelevel: ['lines that begin with a time', 2, `time:${plainTime} level thread caller message`],
  combined: ['combined access log', 6, `time:common ${access} referer user_agent`],
  common: ['common access log', 2, `time:common ${access}`],
  vhost: ['combined access log', 2, `time:common vhost port:int ${access} referer user_agent`],
  extra: [
    'combined access log',
    3,
    `time:common ${access} referer user_agent forwarded_for rt:float uct:float urt`,
  ],
  json: [
    'JSON lines',
    2,
    'time:rfc3339 level message http_request_method http_request_id http_status:int dur:float ok:bool tags user_id',
  ],
  pino: [
    'JSON lines',
    2,
    'time:time level:int pid:int hostname message req_id:int req_method req_url response_time:int err_type err_message err_stack',
  ],
  zapjson: ['JSON lines', 2, 'time:unix level caller message n:int stacktrace'],
  slogjson: [
    'JSON lines',
    1,
    'time:rfc3339 level source_function source_file source_line:int message count:int',
  ],
  logfmt: ['logfmt', 2, 'time:rfc3339 level message port:int duration err'],
  slog: ['logfmt', 2, 'time:rfc3339 level message count:int user err'],
  linuxsys: ['syslog (RFC 3164)', 4, 'time:stamp host program pid:int message'],
  sys5424: [
    'syslog (RFC 5424)',
    2,
    'time:rfc3339 priority:int version:int host program pid:int msgid structured_data message',
  ],
  sysiso: ['syslog with full times', 3, 'time:rfc3339 host program pid:int message'],
  golog: ['lines that begin with a time', 4, 'time:2006/01/02 15:04:05 message'],
  golong: ['lines that begin with a time', 2, 'time:2006/01/02 15:04:05 caller message'],
  zapdev: ['lines that begin with a time', 2, 'time:rfc3339 level logger caller message'],
  logback: ['lines that begin with a time', 3, `time:${plainTime} thread level logger message`],
  spring: ['lines that begin with a time', 3, 'time:rfc3339 level pid:int thread logger message'],
  log4j: ['lines that begin with a time', 2, `time:${plainTime} level thread logger message`],
  jul: ['java.util.logging', 2, 'time:Jan _2, 2006 3:04:05 PM logger method level message'],
  tomcat: ['lines that begin with a time', 2, 'time:02-Jan-2006 15:04:05 level thread logger message'],
  pylog: ['lines that begin with a time', 3, `time:${plainTime} logger level message`],
  gunicorn: ['lines that begin with a time', 3, `time:${plainTime} -0700 pid:int level message`],
  celery: ['lines that begin with a time', 2, `time:${plainTime} level process message`],
  loguru: ['lines that begin with a time', 2, `time:${plainTime} level logger message`],
  pg: ['PostgreSQL', 3, `time:${plainTime} MST pid:int login level message`],
  pg2: [
    'PostgreSQL',
    2,
    `time:${plainTime} MST pid:int session_line:int user database application client level message`,
  ],
  apache24: [
    "Apache's error log",
    2,
    'time:Mon Jan _2 15:04:05 2006 module level pid:int tid:int client message',
  ],
  nginxerr: ["nginx's error log", 2, 'time:2006/01/02 15:04:05 level pid:int tid:int connection:int message'],
  klog: ['klog', 2, 'time:0102 15:04:05 level pid:int caller message'],
  android: ['lines that begin with a time', 3, 'time:01-02 15:04:05 pid:int tid:int level logger message'],
  spark: ['lines that begin with a time', 2, 'time:06/01/02 15:04:05 level logger message'],
  windows: ['lines that begin with a time', 2, `time:${plainTime} level logger message`],
  zookeeper: ['lines that begin with a time', 3, `time:${plainTime} level thread message`],
  health: ['lines that begin with a time', 3, 'time:20060102-15:4:5 cell number:int message'],
  openstack: [
    'lines that begin with a time',
    2,
    `time:${plainTime} file pid:int level logger request_id context message`,
  ],
  ruby: ["Ruby's logger", 2, 'time:2006-01-02T15:04:05 pid:int level program message'],
  mysql: ["MySQL's error log", 2, 'time:rfc3339 thread_id:int level code subsystem message'],
  levelprogram: ['lines that begin with a time', 3, 'time:rfc3339 level logger message'],
  stamplevel: ['lines that begin with a time', 2, 'time:stamp level logger message'],
  dovecot: ['lines that begin with a time', 3, 'time:stamp logger level message'],
  infohost: ['syslog (RFC 3164)', 2, 'time:stamp host program pid:int message'],
  plain: ['lines of text', 2, 'message'],
  uvicorn: ['lines with a level', 3, 'level message'],
};

describe('recognised formats', () => {
  it.each(Object.keys(expected))('include %s, with every line and every value', (name) => {
    const trial = recognised(logs[name]!);
    const found = [trial.candidate.title, trial.records, fieldsOf(trial)];
    expect(found).toEqual(expected[name]);
    expect(trial).toMatchObject({ unmatchedLines: 0, unreadableValues: 0 });
    expect(trial.untimed).toBe(fieldsOf(trial).includes('time') ? 0 : trial.records);
  });

  it('have the values of their lines', () => {
    expect(firstOf(recognised(logs['spring']!))).toEqual({
      time: '2026-11-17T09:00:00.123Z',
      level: 'INFO',
      pid: 12345,
      thread: 'main',
      logger: 'c.e.demo.DemoApplication',
      message: 'Starting DemoApplication',
    });
    expect(firstOf(recognised(logs['extra']!))).toMatchObject({
      time: '2026-11-17T10:00:00.000Z',
      path: '/index.html',
      status: 200,
      forwarded_for: '198.51.100.7',
      rt: 0.123,
      uct: 0.001,
      urt: '0.120, 0.003',
    });
    expect(firstOf(recognised(logs['health']!))).toMatchObject({ time: '2017-12-23T22:15:29.606Z' });
    // The abbreviation of a zone means the zone that it denotes most often.
    expect(firstOf(recognised(logs['pg2']!))).toMatchObject({ time: '2026-11-17T09:00:00.123Z' });
    expect(firstOf(recognised(logs['zapjson']!))).toMatchObject({ time: '2026-11-18T15:26:32.123Z' });
  });

  it('of tables have the columns of their header', () => {
    const tables = ['iis', 'cloudfront', 'csv', 'eventcsv'].map((name) => recognised(logs[name]!));
    expect(
      tables.map((trial) => [trial.candidate.title, trial.records, trial.unmatchedLines, fieldsOf(trial)]),
    ).toEqual([
      [
        'W3C extended log',
        2,
        0,
        `time:${plainTime} s_ip cs_method cs_uri_stem sc_status:int time_taken:int cs_user_agent`,
      ],
      ['W3C extended log', 1, 0, `time:${plainTime} x_edge_location sc_bytes:int c_ip cs_host`],
      ['table with a header', 3, 0, `time:${plainTime} level order_id:int message duration:float`],
      [
        'table with a header',
        1,
        0,
        'time:01/02/2006 3:04:05 PM level source event_id:int task_category message',
      ],
    ]);
    expect(tables.map((trial) => firstOf(trial)['time'])).toEqual([
      '2026-11-17T10:00:00.000Z',
      '2026-11-17T10:00:00.000Z',
      '2026-11-17T10:00:00.000Z',
      '2026-11-17T13:00:00.000Z',
    ]);
    // The quotation marks around a value are not part of it.
    expect(tables[2]!.first.map((values) => values[3])).toEqual(['hello, world', 'plain', '']);
  });

  it('keep the lines of a stack trace with their record', () => {
    const { definition, first } = recognised(logs['logback']!);
    expect(definition.file?.multiline?.start).toBeDefined();
    expect(String(first[1]![4])).toBe(
      logs['logback']!.split('\n')
        .slice(1, 7)
        .join('\n')
        .replace(/^.* - /, ''),
    );
  });

  it('of the shipped samples equal those of the shipped agents', () => {
    const nginx = recognised(readFileSync(join(root, 'data/samples/nginx.log')).subarray(0, 200_000));
    expect(nginx).toMatchObject({
      unreadableValues: 0,
      untimed: 0,
      candidate: { title: 'combined access log' },
    });
    expect(nginx.unmatchedLines).toBeLessThanOrEqual(1);
    const app = recognised(readFileSync(join(root, 'data/samples/app.log')));
    expect(app).toMatchObject({ records: 2000, unmatchedLines: 0, unreadableValues: 0, untimed: 0 });
    expect(fieldsOf(app)).toBe(
      'time:rfc3339 level service trace_id:int duration_ms:float context_city context_items:int context_tags message',
    );
  });

  it('read times in milli-, micro- and nanoseconds, and dates in either order', () => {
    const timeOf = (value: string): unknown =>
      firstOf(recognised(`{"ts":${value},"n":1}\n{"ts":${value},"n":2}\n`))['time'];
    for (const digits of ['1795015592123', '1795015592123456', '1795015592123456789'])
      expect(timeOf(digits)).toBe('2026-11-18T15:26:32.123Z');
    expect(timeOf('1795015592.123')).toBe('2026-11-18T15:26:32.123Z');
    expect(timeOf('"18/11/2026 15:26:32"')).toBe('2026-11-18T15:26:32.000Z');
    expect(timeOf('"11/18/2026 15:26:32"')).toBe('2026-11-18T15:26:32.000Z');
    // Both orders are possible, and the one in which the times are near together is chosen.
    const near = '{"ts":"03/11/2026 10:00:00"}\n{"ts":"04/11/2026 10:00:00"}\n';
    expect(firstOf(recognised(near))['time']).toBe('2026-11-03T10:00:00.000Z');
  });

  it.each([
    ['"1.9"', '"1.10"', 'string', '1.10'],
    ['"8.0"', '"8.1"', 'string', '8.0'],
    ['"1.9"', '"1.11"', 'string', undefined],
    ['1.9', '1.10', 'float', undefined],
    ['"01001"', '"1002"', 'string', undefined],
    ['"1001"', '"1002"', 'int', undefined],
    ['"-"', '"0.50"', 'string', '0.50'],
    ['"-"', '"0.5"', 'string', undefined],
    ['"x"', '"8.0"', 'string', undefined],
  ])('keep quoted numbers as text if a float would not give them back: %s, %s', (a, b, type, unlike) => {
    const { candidate } = recognised(`{"n":1,"version":${a}}\n{"n":2,"version":${b}}\n`);
    const field = candidate.fields.find(({ name }) => name === 'version')!;
    expect([field.type, field.unlikeFloat]).toEqual([type, unlike]);
  });

  it('read other quoted decimals as numbers if a float gives them back', () => {
    const { candidate } = recognised('{"n":1,"size":"1.9"}\n{"n":2,"size":"1.11"}\n');
    expect(candidate.fields.find(({ name }) => name === 'size')!.type).toBe('float');
  });

  it('say if dates do not distinguish the day from the month', () => {
    const otherOrder = (...dates: string[]): unknown => {
      const { candidate, yaml } = recognised(dates.map((date) => `${date} INFO started\n`).join(''));
      const other = candidate.fields[0]!.otherOrder;
      expect(yaml.includes('day and month exchanged')).toBe(other !== undefined);
      if (other !== undefined) expect(yaml).toContain(`: '${other}'.`);
      return other;
    };
    expect(otherOrder('03/04/2026 10:00:00', '03/04/2026 10:00:01')).toBe('01/02/2006 15:04:05');
    expect(otherOrder('3/4/2026 10:00:00', '3/4/2026 10:00:01')).toBe('2/1/2006 15:04:05');
    expect(otherOrder('10:00:00 03/04/2026', '10:00:01 03/04/2026')).toBe('15:04:05 01/02/2006');
    expect(otherOrder('03/04/2026 10:00:00', '13/04/2026 10:00:00')).toBeUndefined();
    expect(otherOrder('03/04/2026 10:00:00', '04/04/2026 10:00:00')).toBeUndefined();
    expect(otherOrder('2026/04/03 10:00:00', '2026/04/03 10:00:01')).toBeUndefined();
  });

  it('allow a rare line to lack a part that all others have', () => {
    const usual = Array.from(
      { length: 300 },
      (_, i) => `2026-11-17 10:00:00,123 INFO ${i} c.d.E: text ${i}\n`,
    );
    const trial = recognised(`${usual.join('')}2026-11-17 10:00:01,000 stopped\n`);
    expect(fieldsOf(trial)).toBe(`time:${plainTime} level number:int logger message`);
    expect(trial).toMatchObject({ records: 301, unmatchedLines: 0 });
  });

  it('list the lines that do not match', () => {
    const trial = recognised(`${logs['json']!.repeat(20)}panic: out of memory\n`);
    expect(trial).toMatchObject({ lines: 41, unmatchedLines: 1, records: 40 });
    expect(trial.definition.file?.otherwise).toBe('msg');
    expect(trial.unmatched).toEqual([
      {
        path: 'log',
        text: 'panic: out of memory',
        reason: expect.stringContaining('not a JSON object') as string,
      },
    ]);
  });
});

describe('lines of no record', () => {
  const access = '10.0.0.4 - - [28/Nov/2026:05:00:00 +0000] "GET / HTTP/1.1" 200 5\n'.repeat(9);

  it('get a field for their text where the format has none', () => {
    const trial = recognised(`${access}worker exited\n`);
    expect(trial).toMatchObject({ lines: 10, unmatchedLines: 1, records: 9 });
    expect(trial.definition.file?.otherwise).toBe('message');
    expect(fieldsOf(trial)).toMatch(/ message$/);
  });

  it('are skipped if they are comments, and are then not counted', () => {
    const trial = recognised(`# comment\n${access}# comment\n`);
    expect(trial).toMatchObject({ lines: 9, skippedLines: 2, unmatchedLines: 0, records: 9 });
    expect(trial.definition.file).toMatchObject({ skip: '^#', otherwise: undefined });
    const both = recognised(`# comment\n${access}worker exited\n`);
    expect(both).toMatchObject({ lines: 10, skippedLines: 1, unmatchedLines: 1, records: 9 });
    expect(both.definition.file).toMatchObject({ skip: '^#', otherwise: 'message' });
  });

  it('are not skipped if records begin like comments', () => {
    const trial = recognised('# 1 is a number\n# 2 too\ntext\n');
    expect(trial).toMatchObject({ lines: 3, skippedLines: 0, records: 3 });
  });
});

describe('a sample of any bytes', () => {
  const run = (bytes: Uint8Array): void => {
    const trial = recognise(sampleOf(bytes), settings);
    if (trial === undefined) return;
    expect(trial.unmatchedLines).toBeLessThanOrEqual(trial.lines);
    // The result is a valid agent file for the same agent.
    expect(parseAgentFile(trial.yaml, settings.agentPath)).toEqual(trial.definition);
  };

  it('gives a valid agent file, or none', () => {
    const word = fc.constantFrom(
      ...[
        '2026-11-17',
        '10:00:00',
        '10:00:00,5',
        '1795015592',
        'Nov 17 10:00:00',
        'INFO',
        '[',
        ']',
        '{"a":',
        '}',
        '"',
      ],
      ...[
        'a=1',
        '=',
        '|',
        '-',
        ' - ',
        ':',
        '(?P<x>',
        '\\',
        '\t',
        "'",
        'é',
        '\u0000',
        '\n',
        '\n',
        '\r\n',
        '%',
        ' ',
      ],
      ...['"GET / HTTP/1.1"', '200', '-', '<34>1', '{"a":{"b":[1,{"":2}]}}', '\ud800'],
    );
    const text = fc.array(word, { maxLength: 60 }).map((words) => Buffer.from(words.join('')));
    const bytes = fc.oneof(text, fc.uint8Array({ maxLength: 200 }));
    fc.assert(fc.property(bytes, run), { numRuns: caseCount(30, 2000) });
  });

  it('that repeats one character takes no longer than others', () => {
    // Any backtracking step would take minutes for these.
    for (const text of [
      'a',
      ' ',
      '"',
      '[',
      '{',
      '=',
      '1',
      '\\',
      '\t',
      ':',
      '|',
      '[1] ',
      'a=b ',
      '-',
      '{"a":',
    ]) {
      run(Buffer.from(`${text.repeat(60_000 / text.length)}\n`));
      run(Buffer.from(`2026-11-17 10:00:00 INFO ${text.repeat(60_000 / text.length)}\n`));
    }
  });
});
