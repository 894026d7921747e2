import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { operatorsOf } from '../../agents/definition/filter-operators.js';
import { buildProgram } from '../../server/cli/program.js';
import {
  candidatesFor,
  type KnownAgents,
  completionScripts,
  shells,
  type Shell,
} from '../../server/cli/completion.js';
import { itUnless, missingProgram } from '../needs.js';
import { run } from './here.js';
import { main, workFolder } from './process.js';

/** The completions as they are passed to shell scripts: only the words. */
async function offered(folder: string, ...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await run(folder, ['complete', '--', ...words]);
  expect([code, stderr]).toEqual([0, '']);
  return stdout === ''
    ? []
    : stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t')[0]!);
}

describe('completions', () => {
  const fields = [
    { name: 'time', type: 'time', operators: operatorsOf('time') },
    { name: 'status', type: 'int', operators: operatorsOf('int') },
    { name: 'path', type: 'string', operators: operatorsOf('string') },
  ];
  /** The completions for the sample agents, or for the given ones. */
  const known = (values: ReadonlyMap<string, string>): KnownAgents => ({
    agents: () =>
      Promise.resolve(values.has('--agents') ? [] : ['app', 'nginx'].map((word) => ({ word, about: '' }))),
    fields: (agent) => Promise.resolve(agent === 'nginx' ? fields : undefined),
  });
  const cases: [typed: string[], offers: string[] | RegExp][] = [
    [[''], /^(?!.*complete\b).*serve .*query .*token .*help$/],
    [['que'], ['query']],
    [['nothing-like-it'], []],
    [
      ['token', ''],
      ['new', 'list', 'revoke', 'clear', 'help'],
    ],
    [['help', 'st'], ['stats']],
    [['serve', '--tr'], ['--transport']],
    [
      ['serve', '--transport', ''],
      ['auto', 'uws', 'node'],
    ],
    [['serve', '--transport=n'], ['--transport=node']],
    [['serve', '--log-level', 'w'], ['warn']],
    [['stats', '--a'], ['--agents']],
    [['--data', ''], [':folders']],
    [['check', 'nginx', '--file', ''], [':files']],
    [
      ['load', ''],
      ['app', 'nginx'],
    ],
    [['load', '--codec', 'zstd', 'n'], ['nginx']],
    [['load', 'nginx', ''], [':files']],
    [['load', 'nginx', 'a.log', ''], [':files']],
    [['stats', 'nginx', ''], []],
    [['agent', 'new', ''], []],
    [['token', 'new', '--agent', 'a'], ['app']],
    [['query', 'nginx', 'sta'], ['status__']],
    [
      ['query', 'nginx', 'status__g'],
      ['status__gt=', 'status__gte='],
    ],
    [['query', 'nginx', 'limit=5', 'time__s'], ['time__since=']],
    [
      ['query', 'nginx', '--', 'path__not'],
      ['path__not_like=', 'path__not_prefix=', 'path__not_suffix=', 'path__not_regex='],
    ],
    [
      ['query', 'nginx', ''],
      ['time__', 'status__', 'path__', 'any='],
    ],
    [['count', 'nginx', 'any=status__gte=500', 'any=s'], ['any=status__']],
    [
      ['query', 'nginx', 'any2=status__e'],
      ['any2=status__eq=', 'any2=status__exists='],
    ],
    [['query', 'nobody', ''], []],
    [['query', 'nginx', '--fields', 'time,st'], ['time,status']],
    [['query', 'nginx', '--fields', 'status,st'], []],
    [
      ['count', 'nginx', '--by', 'time:1'],
      ['time:1m', 'time:1h', 'time:1d', 'time:1w'],
    ],
    [['count', 'nginx', '--by', 'sta'], ['status']],
    [['completion', 'f'], ['fish']],
    [['--agents', 'elsewhere', 'query', ''], []],
  ];

  it.each(cases)('after %j are the words that the commands accept', async (words, offers) => {
    const found = await candidatesFor(buildProgram(), words, known);
    const shown = typeof found === 'string' ? [`:${found}`] : found.map(({ word }) => word);
    if (Array.isArray(offers)) expect(shown).toEqual(offers);
    else expect(shown.join(' ')).toMatch(offers);
  });

  it('are printed for shells; for broken agent files they are empty, without an error', async () => {
    const folder = workFolder();
    expect(await offered(folder, 'query', 'nginx', 'status__l')).toEqual(['status__lt=', 'status__lte=']);
    writeFileSync(join(folder, 'config.yaml'), 'server: [');
    expect(await offered(folder, 'query', '')).toEqual([]);
  });
});

/** A folder with a `logstrata` on its path that completes as the real one, and otherwise prints the words it was given. */
function shellFolder(): { folder: string; env: Record<string, string | undefined> } {
  const folder = workFolder();
  mkdirSync(join(folder, 'bin'));
  const command = join(folder, 'bin/logstrata');
  const complete = `exec '${process.execPath}' '${main}' "$@"`;
  writeFileSync(
    command,
    `#!/bin/sh\n[ "$1" = complete ] && ${complete}\nprintf given\nprintf '<%s>' "$@"\necho\n`,
  );
  chmodSync(command, 0o755);
  const env = {
    ...process.env,
    PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
    TERM: 'dumb',
  };
  for (const shell of shells) writeFileSync(join(folder, `completion.${shell}`), completionScripts[shell]);
  return { folder, env };
}

/** The text typed, with a tab for each completion, and the words that the command receives. */
const typed: readonly [line: string, given: string][] = [
  ['logstrata sta\tngi\t', '<stats><nginx>'],
  [
    'logstrata query nginx status__gte=500 --fie\ttime,pa\t',
    '<query><nginx><status__gte=500><--fields><time,path>',
  ],
  ['logstrata serve --transport=u\t', '<serve><--transport=uws>'],
  ['logstrata load nginx ag\tng\t', '<load><nginx><agents/nginx.yaml>'],
  ['logstrata query nginx stat\tgte\t500', '<query><nginx><status__gte=500>'],
  ['logstrata count nginx --by time:1d\t', '<count><nginx><--by><time:1d>'],
];

const interactive: Partial<Record<Shell, { command: string; begin: string }>> = {
  bash: { command: 'bash --norc --noprofile -i', begin: 'source ./completion.bash' },
  zsh: { command: 'zsh -f -i', begin: 'autoload -U compinit; compinit -u -D; source ./completion.zsh' },
};

for (const [shell, { command, begin }] of Object.entries(interactive))
  itUnless(missingProgram(shell, 'script'), `${shell} completes words at a terminal`, () => {
    const { folder, env } = shellFolder();
    const input = `${[begin, ...typed.map(([line]) => line), 'exit'].join('\n')}\n`;
    const ended = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd: folder,
      env,
      input,
      encoding: 'utf8',
    });
    // Words typed while a command ran may appear before the output of the next one.
    const given = [...ended.stdout.matchAll(/given(<.*>)/g)].map(([, words]) => words);
    expect(given, ended.stdout).toEqual(typed.map(([, words]) => words));
  });

itUnless(missingProgram('fish'), 'fish completes words', () => {
  const { folder, env } = shellFolder();
  const ask = (line: string): string[] => {
    const script = `source completion.fish; complete -C '${line}'`;
    const { stdout } = spawnSync('fish', ['--no-config', '-c', script], {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    return stdout
      .split('\n')
      .map((each) => each.split('\t')[0]!)
      .filter((each) => each !== '');
  };
  expect(ask('logstrata sta')).toEqual(['stats']);
  expect(ask('logstrata query ng')).toEqual(['nginx']);
  expect(ask('logstrata query nginx status__g').sort()).toEqual(['status__gt=', 'status__gte=']);
  expect(ask('logstrata serve --transport=u')).toEqual(['--transport=uws']);
  expect(ask('logstrata load nginx age')).toEqual(['agents/']);
});
