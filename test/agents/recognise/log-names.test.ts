import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fc } from '../../cases.js';
import { LogNames } from '../../../agents/collect/logs/log-names.js';
import { pathOf } from '../../../agents/recognise/field-names.js';

describe('file.path', () => {
  it.each([
    [['access.log'], '/var/log/access\\.log'],
    [['access.log', 'access.log.1', 'access.log.2.gz'], '/var/log/access\\.log'],
    [['access.log-20261117.gz'], '/var/log/access\\.log'],
    [['app-2026-11-17.log'], '/var/log/app-\\d{4}-\\d{2}-\\d{2}\\.log'],
    [['app-2026-11-17.log', 'app-2026-11-18.log.gz'], '/var/log/app-\\d{4}-\\d{2}-\\d{2}\\.log'],
    [['web1.log', 'web2.log', 'web10.log.1'], '/var/log/web\\d+\\.log'],
    [['a.json', 'b.json'], '/var/log/.*\\.json'],
    [['shop-a.log', 'shop-b.log', 'shop-.log'], '/var/log/shop-.*\\.log'],
    [['syslog'], '/var/log/syslog'],
    [['a+b (1).log'], '/var/log/a\\+b \\(1\\)\\.log'],
  ])('for %j is %s', (names, path) => {
    expect(pathOf(names.map((name) => `/var/log/${name}`))).toBe(path);
  });

  it('names one folder', () => {
    expect(() => pathOf(['/a/x.log', '/b/x.log'])).toThrow('several folders (/a, /b)');
  });

  it('matches every file that it was derived from', () => {
    const name = fc
      .stringMatching(/^[a-z+()[\]{}^$.|0-9-]{1,12}$/)
      .filter((text) => text !== '.' && text !== '..');
    const suffix = fc.constantFrom('', '.1', '.gz', '.2.gz', '-20261117', '.2026-11-17');
    const names = fc.array(
      fc.tuple(name, suffix).map(([base, end]) => `/logs/${base}${end}`),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(names, (files) => {
        const pattern = pathOf(files).slice('/logs/'.length);
        const known = new LogNames(pattern);
        for (const file of files) expect(known.read(basename(file))).not.toBeNull();
      }),
    );
  });
});
