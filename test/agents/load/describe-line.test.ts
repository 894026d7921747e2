import { describe, expect, test } from 'vitest';
import { describeLine } from '../../../agents/decode/describe-line.js';
import { definitionOf, lineOf, nowMs } from './archive.js';

const options = { timezone: 'UTC', now: () => nowMs };

describe('the explanation of one line', () => {
  test('lists every field with its parsed value', () => {
    expect(describeLine(definitionOf(), lineOf(3), { ...options, fileName: 'app_web.log.1.gz' })).toEqual({
      outcome: 'record',
      records: 1,
      continues: false,
      fields: [
        {
          name: 'time',
          type: 'time',
          value: BigInt(Date.UTC(2026, 10, 20, 0, 0, 3)),
          text: '2026-11-20T00:00:03Z',
          unreadable: false,
        },
        { name: 'n', type: 'int', value: 3n, text: '3', unreadable: false },
        {
          name: 'text',
          type: 'string',
          value: 'some text of line 3',
          text: 'some text of line 3',
          unreadable: false,
        },
        { name: 'host', type: 'string', value: 'web', text: 'web', unreadable: false },
      ],
      parsed: [
        { name: 'time', text: '2026-11-20T00:00:03Z' },
        { name: 'n', text: '3' },
        { name: 'text', text: 'some text of line 3' },
        { name: 'host', text: 'web' },
      ],
    });
  });

  test('names the values that could not be read', () => {
    const description = describeLine(definitionOf(), 'soon - text', options);
    expect(description).toMatchObject({
      fields: [
        { name: 'time', value: null, unreadable: true },
        { name: 'n', value: null, unreadable: true },
        { name: 'text', value: 'text', unreadable: false },
        { name: 'host', value: null, unreadable: false },
      ],
    });
  });

  test('shows the result of a template that could not be read', () => {
    const definition = definitionOf();
    const fields = definition.fields.map((field) =>
      field.name === 'n' ? { ...field, template: '{{.n}}{{.text}}' } : field,
    );
    const made = (line: string): unknown => describeLine({ ...definition, fields }, line, options);
    expect(made('2026-11-20T00:00:03Z 3 apples')).toMatchObject({
      fields: [{}, { name: 'n', value: null, text: '3apples', unreadable: true }, {}, {}],
    });
    expect(made('2026-11-20T00:00:03Z 3 4')).toMatchObject({
      fields: [{}, { name: 'n', value: 34n, text: '34', unreadable: false }, {}, {}],
    });
  });

  test('leaves out the end of the line, whatever line ends the shell passed on', () => {
    const line = lineOf(3).trimEnd();
    const whole = describeLine(definitionOf(), line, options);
    for (const end of ['\r', '\n', '\r\n'])
      expect(describeLine(definitionOf(), line + end, options)).toEqual(whole);
  });

  test('shows JSON numbers with all digits', () => {
    const line = '{"time":"2026-11-20T00:00:03Z","n":9007199254740993,"text":{"a":[1, 2]},"other":null}';
    expect(describeLine(definitionOf({ format: 'json' }), line, options)).toMatchObject({
      outcome: 'record',
      fields: [{}, { value: 9007199254740993n }, { value: '{"a":[1, 2]}' }, { value: null }],
      parsed: [
        { name: 'time' },
        { name: 'n', text: '9007199254740993' },
        { name: 'text' },
        { name: 'other', text: null },
      ],
    });
  });

  test('shows nested JSON with the paths that fields take', () => {
    const definition = definitionOf({ format: 'json' });
    const sources = ['at.time', 'a.n', 'a.text', 'a.b.missing'];
    const fields = definition.fields.map((field, i) => ({ ...field, source: sources[i]! }));
    const line = '{"at":{"time":"2026-11-20T00:00:03Z"},"a":{"n":3,"text":null},"a.text":"dots"}';
    expect(describeLine({ ...definition, fields }, line, options)).toMatchObject({
      fields: [
        { value: BigInt(Date.UTC(2026, 10, 20, 0, 0, 3)), text: '2026-11-20T00:00:03Z' },
        { value: 3n, text: '3' },
        { value: 'dots', text: 'dots' },
        { value: null, text: null, unreadable: false },
      ],
      parsed: [
        { name: 'at', text: '{"time":"2026-11-20T00:00:03Z"}' },
        { name: 'a', text: '{"n":3,"text":null}' },
        { name: 'a.text', text: 'dots' },
        { name: 'at.time', text: '2026-11-20T00:00:03Z' },
        { name: 'a.n', text: '3' },
      ],
    });
  });

  test('shows logfmt with all its keys', () => {
    const line = 'time=2026-11-20T00:00:03Z n=3 text="a \\"b\\"" other= debug n=4';
    expect(describeLine(definitionOf({ format: 'logfmt' }), line, options)).toMatchObject({
      fields: [{}, { value: 4n, text: '4' }, { value: 'a "b"' }, { value: null, unreadable: false }],
      parsed: [
        { name: 'time', text: '2026-11-20T00:00:03Z' },
        { name: 'n', text: '4' },
        { name: 'text', text: 'a "b"' },
        { name: 'other', text: '' },
        { name: 'debug', text: 'true' },
      ],
    });
    expect(describeLine(definitionOf({ format: 'logfmt' }), 'n="3', options)).toMatchObject({
      outcome: 'rejected',
    });
  });

  test('states the reason if the line is no record', () => {
    expect(describeLine(definitionOf(), 'nonsense', options)).toEqual({
      outcome: 'rejected',
      continues: false,
      reason: 'does not match the pattern',
    });
    expect(describeLine(definitionOf({ format: 'json' }), '{"n":', options)).toMatchObject({
      outcome: 'rejected',
    });
    expect(describeLine(definitionOf(), '\n', options)).toEqual({
      outcome: 'blank',
      continues: false,
    });
    expect(() => describeLine(definitionOf(), 'one\ntwo', options)).toThrow(/more than one line/);
  });
});
