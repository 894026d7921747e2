import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fc } from '../../cases.js';
import { LogNames } from '../../../agents/collect/logs/log-names.js';
import { pathOf } from '../../../agents/recognise/log-path.js';

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

  it('names folders that are siblings, or in siblings', () => {
    expect(() => pathOf(['/a/x.log', '/b/x.log'])).toThrow('several folders (/a, /b)');
    expect(() => pathOf(['/a/x.log', '/a/b/x.log'])).toThrow('several folders (/a, /a/b)');
    expect(pathOf(['/srv/a/logs/x.log', '/srv/b/logs/x.log.1'])).toBe('/srv/*/logs/x\\.log');
    expect(pathOf(['/srv/a*b/x.log'])).toBe('/srv/a\\*b/x\\.log');
  });

  const id = 'c0ffee00'.repeat(8);

  it.each([
    [['/l/a/x.log'], ['/l/*/*.log'], '/l/*/.*\\.log'],
    [['/l/a/x.log'], ['/l/*/x.log'], '/l/*/x\\.log'],
    [['/l/a/x1.log', '/l/a/x2.log'], ['/l/a/*.log'], '/l/a/x\\d+\\.log'],
    [['/l/a/b/x.log'], ['/l/**/*.log'], '/l/a/b/x\\.log'],
    [
      [
        '/var/log/pods/shop_web-1_0a/nginx/0.log',
        '/var/log/pods/shop_web-1_0a/nginx/0.log.20261120-100000.gz',
      ],
      [],
      '/var/log/pods/(?P<namespace>[^_]+)_(?P<pod>[^_]+)_(?P<uid>[^_]+)/(?P<container>[^/]+)/\\d+\\.log',
    ],
    [
      [`/var/lib/docker/containers/${id}/${id}-json.log`],
      [],
      '/var/lib/docker/containers/(?P<container_id>[0-9a-f]+)/[0-9a-f]+-json\\.log',
    ],
  ])('for %j, found by %j, is %s', (files, globs, path) => {
    expect(pathOf(files, globs)).toBe(path);
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
        const known = new LogNames({ namePattern: pattern });
        for (const file of files) expect(known.read(basename(file))).not.toBeNull();
      }),
    );
  });
});
