import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBounded } from '../../../engine/store/disk/bounded-file.js';
import { readConfigText } from '../../../agents/definition/yaml.js';
import { temporaryFolder } from '../load/temporary.js';

test('a small file is read completely, and of a longer one only one byte more than the limit', async () => {
  const path = join(await temporaryFolder(), 'text');
  for (const length of [0, 1, 4095, 4096, 4097, 30_000]) {
    const bytes = Buffer.from(Array.from({ length }, (_, i) => i % 251));
    writeFileSync(path, bytes);
    for (const most of [length, length + 1, 40_000]) expect(readBounded(path, most)).toEqual(bytes);
    if (length > 0) expect(readBounded(path, length - 1)).toEqual(bytes);
    if (length > 5000) expect(readBounded(path, 5000)).toEqual(bytes.subarray(0, 5001));
  }
});

test('a configuration file without an end is an error', () => {
  expect(() => readConfigText('/dev/zero')).toThrow(
    'the file has more than 1048576 bytes, the maximum for a configuration',
  );
  expect(() => readConfigText('/nowhere/config.yaml')).toThrow('is not there');
});

test('a pipe is refused at once, except one that a starting program was given', async () => {
  const path = join(await temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const end = openSync(path, constants.O_RDWR);
  try {
    writeSync(end, 'more than is read');
    for (const each of [path, `/dev/fd/${end}`])
      expect(() => readBounded(each, 4)).toThrow(`cannot read ${each}: it is a pipe, a file was expected`);
    expect(() => readBounded(path, 4, true)).toThrow('it is a pipe');
    expect(readBounded(`/dev/fd/${end}`, 4, true).toString()).toBe('more ');
  } finally {
    closeSync(end);
  }
  // Nobody writes to it any more.
  expect(() => readConfigText(path, true)).toThrow('it is a pipe');
});
