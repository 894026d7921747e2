import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { fc } from '../cases.js';
import { coloured, hasColours, plain, textWidth } from '../../server/cli/terminal.js';
import { RecordDisplay, type RecordView } from '../../server/cli/record-display.js';
import type { Field } from '../../server/viewer/state/field.js';
import { itUnless, missingProgram } from '../needs.js';
import { run } from './here.js';
import { main, recordsOf, workFolder } from './process.js';

const access: Field[] = [
  { name: 'time', type: 'time' },
  { name: 'remote_addr', type: 'string' },
  { name: 'remote_user', type: 'string' },
  { name: 'method', type: 'string' },
  { name: 'status', type: 'int' },
  { name: 'bytes', type: 'int' },
  { name: 'user_agent', type: 'string' },
  { name: 'message', type: 'string' },
];

function displayOf(view: Partial<RecordView> = {}): RecordDisplay {
  return new RecordDisplay({
    fields: access,
    isChosen: false,
    zone: 'UTC',
    wraps: false,
    paint: plain,
    screenWidth: () => 80,
    ...view,
  });
}

let made = 0;
function recordLine(values: Record<string, unknown>): string {
  const cursor = (++made).toString(16).padStart(16, '0');
  return `${JSON.stringify({ _cursor: cursor, ...values })}\n`;
}

const someone = {
  time: Date.UTC(2026, 10, 24, 5, 30),
  remote_addr: '198.18.0.77',
  remote_user: null,
  method: 'GET',
  status: 200,
  bytes: 1234,
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64)',
  message: 'GET /books/coffee-2730 200',
};

/** Bytes that control a terminal. */
const commands = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u;

describe('records at a terminal', () => {
  it('have the most telling columns, as in the viewer, within 80 columns of the screen', () => {
    const display = displayOf();
    const shown = display.show(
      recordLine(someone) + recordLine({ ...someone, status: 404, message: 'x'.repeat(200) }),
    );
    expect(shown.split('\n')).toEqual([
      'time (UTC)           remote_addr  status  message',
      '2026-11-24 05:30:00  198.18.0.77     200  GET /books/coffee-2730 200',
      `2026-11-24 05:30:00  198.18.0.77     404  ${'x'.repeat(37)}…`,
      '',
    ]);
    expect(display.hidden).toBe(4);
    // A later record that needs more width gets it, without a second header.
    const later = display.show(recordLine({ ...someone, time: someone.time + 7, bytes: 9 }));
    expect(later).toBe('2026-11-24 05:30:00.007  198.18.0.77     200  GET /books/coffee-2730 200\n');
    expect(displayOf({ screenWidth: () => 200 }).show(recordLine(someone))).toContain(
      'Mozilla/5.0 (X11; Linux x86_64)  GET',
    );
    expect(displayOf({ zone: 'Europe/Oslo' }).show(recordLine(someone))).toMatch(
      /^time \(Europe\/Oslo\) .*\n2026-11-24 06:30:00 /,
    );
  });

  it('show all of their values when lines are wrapped', () => {
    const values = { ...someone, message: `one\n\tat ${'deep '.repeat(12)}` };
    const lines = displayOf({ wraps: true }).show(recordLine(values)).split('\n');
    expect(lines.slice(1)).toEqual([
      '2026-11-24 05:30:00  198.18.0.77     200  one',
      '                                              at deep deep deep deep deep deep',
      '                                          deep deep deep deep deep deep ',
      '  method=GET',
      '  bytes=1234',
      '  user_agent=Mozilla/5.0 (X11; Linux x86_64)',
      '',
    ]);
  });

  it('show levels and statuses in colour', () => {
    const shown = displayOf({ paint: coloured }).show(
      recordLine(someone) + recordLine({ ...someone, status: 503 }),
    );
    expect(shown).toContain('\u001b[32m200\u001b[0m');
    expect(shown).toContain('\u001b[31m503\u001b[0m');
    const fields: Field[] = [{ name: 'level', type: 'string' }];
    const levels = displayOf({ fields, paint: coloured }).show(
      ['ERROR', 'warn', 'other'].map((level) => recordLine({ level })).join(''),
    );
    expect(levels.split('\n').slice(1)).toEqual([
      '\u001b[31mERROR\u001b[0m',
      '\u001b[33mwarn\u001b[0m',
      'other',
      '',
    ]);
  });

  it('never exceed the width, and have no bytes that control the terminal', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.stringMatching(/^[\x00-\x20\x7f-\x9fa\n\t\u2028\u202e世]{0,200}$/),
    );
    const value = fc.option(text, { nil: null });
    fc.assert(
      fc.property(
        fc.array(fc.record({ remote_addr: value, user_agent: value, message: value, method: value }), {
          maxLength: 8,
        }),
        fc.integer({ min: 100, max: 200 }),
        fc.boolean(),
        (records, width, wraps) => {
          const display = displayOf({ wraps, screenWidth: () => width });
          const shown = display.show(records.map((one) => recordLine({ ...someone, ...one })).join(''));
          for (const line of shown.split('\n')) {
            expect(line).not.toMatch(commands);
            expect(textWidth(line)).toBeLessThanOrEqual(width);
          }
          if (!wraps) expect(shown.split('\n').length).toBe(records.length === 0 ? 1 : records.length + 2);
        },
      ),
    );
  });

  it('keep every digit of a number, and print a long text in time proportional to its length', () => {
    const fields: Field[] = [
      { name: 'id', type: 'int' },
      { name: 'message', type: 'string' },
    ];
    const line = `{"_cursor":"${'0'.repeat(16)}","id":-9007199254740993,"message":"${'\u0301'.repeat(500_000)}"}\n`;
    for (const wraps of [false, true]) {
      const shown = displayOf({ fields, wraps }).show(line);
      expect(shown).toContain('-9007199254740993');
    }
  });
});

describe('colours', () => {
  it('are used where they are wanted', () => {
    const cases: [Parameters<typeof hasColours>, boolean][] = [
      [['auto', true, {}], true],
      [['auto', false, {}], false],
      [['auto', true, { NO_COLOR: '1' }], false],
      [['auto', true, { NO_COLOR: '' }], true],
      [['auto', true, { TERM: 'dumb' }], false],
      [['auto', false, { FORCE_COLOR: '1' }], true],
      [['auto', true, { FORCE_COLOR: '0' }], false],
      [['always', false, { NO_COLOR: '1' }], true],
      [['never', true, { FORCE_COLOR: '1' }], false],
    ];
    for (const [given, expected] of cases) expect(hasColours(...given)).toBe(expected);
  });
});

describe('query', () => {
  /** A folder with one record, whose message contains commands for terminals. */
  async function evilFolder(): Promise<string> {
    const folder = workFolder();
    writeFileSync(
      join(folder, 'evil.log'),
      `${JSON.stringify({ time: '2026-11-24T05:30:00Z', level: 'error', message: 'a\u001b]0;owned\u0007b\u009b31m' })}\n`,
    );
    await run(folder, ['load', 'app', 'evil.log']);
    return folder;
  }

  it('prints JSON Lines for programs, and a table if asked to', async () => {
    const folder = await evilFolder();
    const records = (await run(folder, ['query', 'app'])).stdout;
    expect(recordsOf(records)).toMatchObject([{ message: 'a\u001b]0;owned\u0007b\u009b31m' }]);

    const table = await run(folder, [
      'query',
      'app',
      '--table',
      '--fields',
      'level,message',
      '--color',
      'always',
    ]);
    expect(table.stdout).toBe(
      '\u001b[1mlevel\u001b[0m  \u001b[1mmessage\u001b[0m\n\u001b[31merror\u001b[0m  a\\u001b]0;owned\\u0007b\\u009b31m\n',
    );
    const both = await run(folder, ['query', 'app', '--wrap', '--csv']);
    expect(both.code).toBe(2);
  });

  itUnless(missingProgram('script'), 'prints a table at a terminal, which gets no commands', async () => {
    const folder = await evilFolder();
    const shown = atTerminal(folder, [[], ['--jsonl'], ['--csv'], ['--wrap', '--color', 'never']]);
    expect(shown).toMatch(/time \(UTC\).*level.*message/);
    expect(shown).toContain('\u001b[31merror\u001b[0m');
    expect(shown.split('a\\u001b]0;owned\\u0007b\\u009b31m')).toHaveLength(5);
    expect(shown.replaceAll(/\u001b\[\d+m|[\r\n]/g, '')).not.toMatch(commands);
  });
});

describe('names that somebody else has chosen', () => {
  const evil = 'a\u001b]0;owned\u0007\u009b31m\n';
  const shown = 'a\\u001b]0;owned\\u0007\\u009b31m\\u000a';

  it('have no effect on a terminal, and end no line', async () => {
    const folder = workFolder();
    copyFileSync(join(folder, 'data/samples/app.log'), join(folder, `${evil}.log`));
    const loaded = await run(folder, ['load', 'app', `${evil}.log`]);
    expect(loaded.stderr).toContain(`loaded   ${shown}.log: 2,000 records`);
    const results = [loaded];
    for (const words of [
      ['stats', 'app'],
      ['load', 'app', `${evil}.gone`],
      ['load', 'app', `--${evil}`],
      ['count', 'app', `${evil}=1`],
      ['query', evil],
      ['check', 'app', '--file', `${evil}.log`],
      ['remove', 'app', '--yes'],
    ])
      results.push(await run(folder, words));
    for (const { stdout, stderr } of results) {
      // JSON writes the line end as `\\n`.
      expect(`${stdout}${stderr}`).toContain(shown.slice(0, -'\\u000a'.length));
      expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.toMatch(commands);
      expect(`${stdout}${stderr}`).not.toMatch(/^\./m);
    }
  });

  itUnless(missingProgram('script'), 'have none in the log of a server at a terminal', () => logsNames(true));

  it('have none in the log of a server without a terminal', () => logsNames(false));

  async function logsNames(isTerminal: boolean): Promise<void> {
    const folder = workFolder();
    const logs = join(folder, `logs\u001b]0;owned\u0007\u009b31m`);
    mkdirSync(logs);
    writeFileSync(join(logs, 'a.log.gz'), gzipSync('a line\n').subarray(0, 10));
    writeFileSync(
      join(folder, 'agents/app.yaml'),
      `fields: [{ name: message }]\nfile: { path: ${JSON.stringify(`${logs}/a\\.log`)}, format: plain, regex: '(?P<message>.*)' }\n`,
    );
    const words = ['serve', '--listen', '127.0.0.1:0', '--console', '127.0.0.1:0'];
    const command = [process.execPath, main, ...words].map((word) => `'${word}'`).join(' ');
    const child = isTerminal
      ? spawn('script', ['-qec', `exec ${command}`, '/dev/null'], { cwd: folder })
      : spawn(process.execPath, [main, ...words], { cwd: folder });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    const ended = once(child, 'close');
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    const text = 'logs\\u001b]0;owned\\u0007\\u009b31m/a.log.gz is a truncated gzip file';
    await vi.waitFor(() => expect(output).toContain(text), { timeout: 60_000 });
    if (isTerminal) child.stdin.write('\u0003');
    else child.kill('SIGTERM');
    await ended;
    expect(output.replaceAll(/\u001b\[\d+m|[\r\n]|\^C/g, '')).not.toMatch(commands);
  }
});

/** The output of `query app` with these options at a terminal of 80 columns, in turn. */
function atTerminal(folder: string, options: readonly (readonly string[])[]): string {
  const commands = options.map((words) => [process.execPath, main, 'query', 'app', ...words].join("' '"));
  const script = ['stty cols 80 rows 24', ...commands.map((command) => `'${command}'`)].join('; ');
  const { stdout } = spawnSync('script', ['-qec', script, '/dev/null'], {
    cwd: folder,
    env: { ...process.env, TERM: 'xterm', NO_COLOR: '', FORCE_COLOR: '' },
    input: '',
    encoding: 'utf8',
  });
  return stdout;
}
