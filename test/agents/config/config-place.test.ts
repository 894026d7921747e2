import { expect, it } from 'vitest';
import { configPathOf } from '../../../server/cli/options/settings.js';

const ofMachine = '/etc/logstrata/config.yaml';

it.each([
  ['the flag before all', 'a.yaml', 'b.yaml', ['config.yaml', ofMachine], 'a.yaml'],
  ['the environment before what is there', undefined, 'b.yaml', ['config.yaml', ofMachine], 'b.yaml'],
  ['nothing in the environment', undefined, '', ['config.yaml', ofMachine], 'config.yaml'],
  [
    'the one of the working folder before the one of the machine',
    undefined,
    undefined,
    ['config.yaml', ofMachine],
    'config.yaml',
  ],
  ['the one of the machine', undefined, undefined, [ofMachine], ofMachine],
  [
    'none where the working folder has agents of its own',
    undefined,
    undefined,
    ['agents', ofMachine],
    undefined,
  ],
  ['none where there is none', undefined, undefined, [], undefined],
])('which configuration is used: %s', (_name, flag, environment, there: readonly string[], wanted) => {
  const found = configPathOf(flag, { LOGSTRATA_CONFIG: environment }, (path) => there.includes(path));
  expect(found).toBe(wanted);
});
