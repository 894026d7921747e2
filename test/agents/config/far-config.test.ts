import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../agents/definition/config-file.js';

const farOf = (text: string) =>
  parseConfig(`storage:\n  far:\n${text}`, '/etc/logstrata/config.yaml').storage.far;

describe('storage.far', () => {
  it('may be one server, with defaults for the rest', () => {
    expect(farOf('    clickhouse: { url: "http://ch:8123/" }')).toEqual({
      shards: [['http://ch:8123']],
      database: 'logstrata',
      user: 'default',
      passwordFile: null,
      afterMs: 7 * 86_400_000,
      keepLocalMs: 86_400_000,
      bytesPerSecond: 64 * 1024 * 1024,
    });
  });

  it('may be shards with replicas, with the password in a file next to the configuration', () => {
    const text = `    clickhouse:
      shards:
        - replicas: [http://a:8123, http://b:8123]
        - replicas: https://c:8443
      database: logs
      user: logstrata
      password_file: ch.password
    after: 30d
    keep_local: 0s
    rate: 5mb
`;
    expect(farOf(text)).toEqual({
      shards: [['http://a:8123', 'http://b:8123'], ['https://c:8443']],
      database: 'logs',
      user: 'logstrata',
      passwordFile: '/etc/logstrata/ch.password',
      afterMs: 30 * 86_400_000,
      keepLocalMs: 0,
      bytesPerSecond: 5 * 2 ** 20,
    });
  });

  it.each([
    ['    after: 7d\n', ':3:5: clickhouse is missing: where the servers are, as url or shards'],
    ['    clickhouse: { database: logs }\n', 'url is missing: an address such as http://clickhouse-1:8123'],
    [
      '    clickhouse: { url: "ch:8123" }\n',
      'url must be an address such as http://clickhouse-1:8123, not "ch:8123"',
    ],
    ['    clickhouse: { url: "http://u:p@ch:8123" }\n', 'url must be an address'],
    [
      '    clickhouse: { url: "http://a", shards: [{ replicas: "http://b" }] }\n',
      'give either shards or url, not both',
    ],
    ['    clickhouse: { shards: [] }\n', 'shards must be a list of 1 to 1000'],
    ['    clickhouse: { shards: [{}] }\n', 'replicas is missing'],
    ['    clickhouse: { shards: [{ replicas: ["http://a", "http://a"] }] }\n', 'http://a is named twice'],
    [
      '    clickhouse: { url: "http://a", database: "x; DROP" }\n',
      'database must be letters, digits and underscores',
    ],
    ['    clickhouse: { url: "http://a" }\n    rate: 0\n', 'rate must be'],
  ])('reports the mistake in %s', (text, message) => {
    expect(() => farOf(text)).toThrow(message);
  });
});
