import { expect, it } from 'vitest';
import { defaultConfig } from '../../../agents/definition/config.js';
import { parseConfig } from '../../../agents/definition/config-file.js';

const read = (reader: string) =>
  parseConfig(`server:\n  reader: ${reader}\n`, '/etc/logstrata/config.yaml').server.reader;

it('reads from which writer a reader gets its archive', () => {
  expect(defaultConfig.server.reader).toBeNull();
  expect(read('{ writer: http://logs-1:2112 }')).toEqual({
    writer: 'http://logs-1:2112',
    tokenFile: null,
    caFile: null,
    lagMs: 1000,
  });
  expect(
    read('{ writer: "https://Logs-1:2112/", token_file: token, ca_file: /etc/ca.pem, lag: 10s }'),
  ).toEqual({
    writer: 'https://logs-1:2112',
    tokenFile: '/etc/logstrata/token',
    caFile: '/etc/ca.pem',
    lagMs: 10_000,
  });
});

it.each([
  ['{ lag: 1s }', 'writer'],
  ['{ writer: logs-1 }', 'the address of the console'],
  ['{ writer: http://logs-1:2112/api }', 'the address of the console'],
  ['{ writer: http://logs-1:2112, lag: 2m }', 'at most 60s'],
  ['{ writer: http://logs-1:2112, token_file: "" }', 'token_file must name a file'],
  ['{ writer: http://logs-1:2112, ca_file: ca.pem }', 'asked over https'],
  ['{ writer: http://logs-1:2112, token: secret }', 'token'],
])('reports the mistake in %s', (reader, message) => {
  expect(() => read(reader)).toThrow(message);
});
