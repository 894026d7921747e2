import { expect, it } from 'vitest';
import { configPathOf } from '../../../server/cli/options.js';

const ofMachine = '/etc/logstrata/config.yaml';

it.each([
  ['the flag before everything else', 'a.yaml', 'b.yaml', ['config.yaml', ofMachine], 'a.yaml'],
  ['the environment before existing files', undefined, 'b.yaml', ['config.yaml', ofMachine], 'b.yaml'],
  ['nothing in the environment', undefined, '', ['config.yaml', ofMachine], 'config.yaml'],
  [
    "the working folder's before the machine's",
    undefined,
    undefined,
    ['config.yaml', ofMachine],
    'config.yaml',
  ],
  ["the machine's", undefined, undefined, [ofMachine], ofMachine],
  ['none if the working folder has its own agents', undefined, undefined, ['agents', ofMachine], undefined],
  ['none if no file exists', undefined, undefined, [], undefined],
])('which configuration is used: %s', (_name, flag, environment, there: readonly string[], wanted) => {
  const found = configPathOf(flag, { LOGSTRATA_CONFIG: environment }, (path) => there.includes(path));
  expect(found).toBe(wanted);
});
