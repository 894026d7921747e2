import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { compileTemplate } from '../../../agents/definition/template.js';
import { TemplateOverrun, TemplateWork } from '../../../agents/definition/template-value.js';
import { LogstrataError } from '../../../engine/core/errors.js';

const record: Readonly<Record<string, string>> = {
  method: 'GET',
  path: '/a b',
  status: '404',
  bytes: '-',
  empty: '',
  id: '9007199254740993',
  ratio: '3.14159',
  name: 'Øyvind',
  'x-request-id': 'r1',
  'a.b': 'dotted',
};

function render(template: string): string {
  return compileTemplate(template).render((name) => record[name]);
}

describe('the output of a template', () => {
  test.each([
    ['', ''],
    ['plain text', 'plain text'],
    ['{{.method}} {{.path}}', 'GET /a b'],
    ['<{{ .method }}>', '<GET>'],
    ['[{{.missing}}]', '[]'],
    ['{{.name}}', 'Øyvind'],
    ['{{"a \\"b\\" \\u00e9\\t"}}', 'a "b" é\t'],
    ['{{`raw \\n`}}', 'raw \\n'],
    ['{{12}} {{1.5}} {{0x1f}} {{-3}} {{true}} {{1e21}} {{0.00001}}', '12 1.5 31 -3 true 1e+21 1e-05'],
    ["{{'a'}}", '97'],
    ['{{index . "x-request-id"}}/{{index . "a.b"}}', 'r1/dotted'],
    ['a {{- .method -}} b', 'aGETb'],
    ['a \n {{- "x" }} b', 'ax b'],
    ['a{{/* a comment with }} inside */}}b', 'ab'],
    ['a {{- /* trimmed */ -}} b', 'ab'],
    ['{{"}}"}}', '}}'],
  ])('%j is %j', (template, expected) => {
    expect(render(template)).toBe(expected);
  });

  test.each([
    ['{{if eq .status "404"}}missing{{else}}there{{end}}', 'missing'],
    ['{{if eq .status "200"}}a{{else if eq .status "404"}}b{{else}}c{{end}}', 'b'],
    ['{{if eq .method "POST" "PUT" "GET"}}one of them{{end}}', 'one of them'],
    ['{{if ne .method "GET"}}x{{end}}', ''],
    ['{{if .empty}}x{{else}}empty{{end}}', 'empty'],
    ['{{if .missing}}x{{else}}missing{{end}}', 'missing'],
    ['{{if eq .missing ""}}the same as empty{{end}}', 'the same as empty'],
    ['{{if and .method (not .empty)}}both{{end}}', 'both'],
    ['{{if or .empty .missing}}x{{else}}none{{end}}', 'none'],
    ['{{or .empty .method "d"}} {{and .method .path}} {{not .method}}', 'GET /a b false'],
    ['{{if lt .status 500}}below{{end}} {{if ge .status 404.0}}from{{end}}', 'below from'],
    [
      '{{if lt .bytes 10}}x{{else}}no number is not less{{end}}{{if ge .bytes 10}}nor more{{end}}',
      'no number is not less',
    ],
    ['{{eq .id 9007199254740993}} {{eq .id 9007199254740992}}', 'true false'],
    ['{{lt "10" "9"}} {{lt 10 9}} {{le "a" "a"}} {{gt "b" "a"}}', 'true false true true'],
    ['{{if .method}}{{if .empty}}x{{else}}inner{{end}}{{end}}', 'inner'],
  ])('%j decides %j', (template, expected) => {
    expect(render(template)).toBe(expected);
  });

  test.each([
    ['{{printf "%s-%v" .method .status}}', 'GET-404'],
    [
      '{{printf "%d|%5d|%-5d|%05d|%+d" .status .status .status .status .status}}',
      '404|  404|404  |00404|+404',
    ],
    ['{{printf "%d" .id}}', '9007199254740993'],
    ['{{printf "%.2f|%8.3f|%08.3f|%f" .ratio .ratio .ratio 1}}', '3.14|   3.142|0003.142|1.000000'],
    ['{{printf "%x %X %#x %o %b %c" 255 255 255 8 5 65}}', 'ff FF 0xff 10 101 A'],
    ['{{printf "%x" .method}}', '474554'],
    ['{{printf "%q %6s|%-6s|%.2s" .path .method .method .method}}', '"/a b"    GET|GET   |GE'],
    ['{{printf "%e %g %.3g %t %U" 1500.0 0.1 .ratio true 233}}', '1.500000e+03 0.1 3.14 true U+00E9'],
    ['{{printf "100%%"}}', '100%'],
    ['{{printf "%d" .method}}', '%!d(string=GET)'],
    ['{{printf "%d %d" 1}}', '1 %!d(MISSING)'],
    ['{{printf "%d" 1 2}}', '1%!(EXTRA int=2)'],
    ['{{printf "%z" 1}}', '%!z(int=1)'],
    ['{{printf "%5s" .name}}', 'Øyvind'],
    ['{{printf "%8s" .name}}', '  Øyvind'],
    ['{{.status | printf "%s:%s" .method}}', 'GET:404'],
    ['{{.name | len}} {{len .missing}} {{len (printf "%s%s" .method .method)}}', '7 0 6'],
    ['{{index .method 0}} {{slice .path 1 2}}', '71 a'],
    ['{{print .method 1 2 "x"}}', 'GET1 2x'],
    [
      '{{bytes "[27,91,195, 169]"}} {{bytes "[1,256]"}} {{bytes "[1"}} {{bytes "[a]"}}',
      '\u001b[é [1,256] [1 [a]',
    ],
    ['{{bytes .missing}}{{bytes .status}}', '404'],
  ])('%j formats %j', (template, expected) => {
    expect(render(template)).toBe(expected);
  });

  test.each([
    ['{{$a := .method}}{{$a}}-{{$a}}', 'GET-GET'],
    ['{{$a := "x"}}{{if .method}}{{$a = "y"}}{{end}}{{$a}}', 'y'],
    ['{{$a := "x"}}{{if .method}}{{$a := "inner"}}{{$a}}{{end}}{{$a}}', 'innerx'],
    ['{{if $s := .status}}{{$s}}{{end}}', '404'],
  ])('%j has variables: %j', (template, expected) => {
    expect(render(template)).toBe(expected);
  });
});

describe('the steps of a template', () => {
  const doubled = '{{$x := .method}}' + '{{$x = print $x $x}}'.repeat(30);

  test.each([
    ['a text that is doubled repeatedly', doubled],
    ['a text that is printed repeatedly', '{{$x := .long}}' + '{{$x}}{{if .empty}}{{end}}'.repeat(100)],
    ['functions of a long text', '{{len .long}}'.repeat(100)],
    ['comparisons of long texts', '{{eq .long .other}}'.repeat(50)],
    ['widths', `{{printf "${'%1000d'.repeat(50_000)}"${' 1'.repeat(50_000)}}}`],
    ['verbs without values', '{{printf .verbs}}'],
  ])('end with %s', (_, template) => {
    const long: Readonly<Record<string, string>> = {
      ...record,
      long: 'x'.repeat(1_000_000),
      other: `${'x'.repeat(999_999)}y`,
      verbs: '%d'.repeat(1_000_000),
    };
    expect(() => compileTemplate(template).render((name) => long[name])).toThrow(TemplateOverrun);
  });

  test('are counted over all templates of a line', () => {
    const work = new TemplateWork();
    const template = compileTemplate('{{len .long}}');
    const renderAll = (): void => {
      for (let i = 0; i < 10; i++) template.render(() => 'x'.repeat(1_000_000), work);
    };
    renderAll();
    expect(renderAll).toThrow(TemplateOverrun);
    work.begin();
    renderAll();
  });

  test('suffice for typical templates', () => {
    const steps = '{{$x = printf "%s-%5d" .method .status}}'.repeat(100);
    const work = new TemplateWork();
    for (let i = 0; i < 200; i++) {
      expect(compileTemplate(`{{$x := ""}}${steps}{{$x}}`).render((name) => record[name], work)).toBe(
        'GET-  404',
      );
    }
  });

  test('count a text of any length by its characters', () => {
    const text = `é🦊${'x'.repeat(1_000_000)}`;
    const template = compileTemplate('{{printf "%.2s|%5.1s|%-4.2s|" .t .t .t}}{{len (printf "%3s" .t)}}');
    expect(template.render(() => text)).toBe('é🦊|    é|é🦊  |1000006');
  });
});

test('a template lists the fields that it uses, each once', () => {
  const template = compileTemplate('{{.a}}{{if .b}}{{.a}}{{end}}{{index . "c-d"}}{{printf "%s" .e}}');
  expect(template.fields).toEqual(['a', 'b', 'c-d', 'e']);
});

test('the arguments after a decided "or" are not evaluated', () => {
  const asked: string[] = [];
  const template = compileTemplate('{{or .a .b}}{{and .c .d}}');
  const text = template.render((name) => {
    asked.push(name);
    return name === 'a' ? 'x' : '';
  });
  expect(text).toBe('x');
  expect(asked).toEqual(['a', 'c']);
});

describe('mistakes are reported with their position', () => {
  test.each([
    ['{{.a', 1, 'the action is not closed'],
    ['ab {{if .a}}', 4, 'the {{if}} has no {{end}}'],
    ['{{end}}', 3, 'unexpected {{end}}'],
    ['{{else}}', 3, 'unexpected {{else}}'],
    ['{{if .a}}1{{else}}2{{else}}3{{end}}', 22, 'a second {{else}}'],
    ['{{}}', 1, 'the action is empty'],
    ['{{if}}x{{end}}', 5, 'a value is missing'],
    ['{{pritnf "x"}}', 3, 'unknown function "pritnf" (did you mean "printf"?)'],
    ['{{method}}', 3, 'a field begins with a point: .method'],
    ['{{.a "x"}}', 6, 'a value takes no arguments'],
    ['{{eq .a}}', 3, 'eq has 1 arguments, but takes at least 2'],
    ['{{not .a .b}}', 3, 'not has 2 arguments, but takes 1'],
    ['{{not eq .a .b}}', 7, 'a call among arguments needs parentheses: (eq'],
    ['{{.}}', 3, 'the whole record'],
    ['{{len .}}', 3, 'the whole record'],
    ['{{.a.b}}', 5, '".a" has no fields of its own'],
    ['{{$x}}', 3, 'unknown variable "$x"'],
    ['{{if .a}}{{$x := 1}}{{end}}{{$x}}', 30, 'unknown variable "$x"'],
    ['{{(len .a}}', 3, 'the parenthesis is not closed'],
    ['{{len .a)}}', 9, 'unexpected ")"'],
    ['{{"abc}}', 3, 'the string is not closed'],
    ['{{"\\z"}}', 4, 'unknown escape'],
    ["{{'ab'}}", 3, 'one character'],
    ['{{/* a }}', 1, 'the comment is not closed'],
    ['{{.a | .b}}', 8, 'only a function can follow "|"'],
    ['{{range .a}}{{end}}', 3, '{{range}} is not supported'],
    ['{{.a"x"}}', 5, 'a blank is missing'],
    ['{{#a}}', 3, 'unexpected "#"'],
    [`{{${'1'.repeat(401)}}}`, 3, 'a number has at most 400 digits'],
    ['{{index . .a}}', 3, 'the name of a field in quotes'],
    ['{{' + '('.repeat(200) + '1' + ')'.repeat(200) + '}}', 103, 'more than 100 levels'],
  ])('%j, character %i: %s', (template, character, message) => {
    expect.assertions(3);
    try {
      compileTemplate(template);
    } catch (error) {
      expect(error).toBeInstanceOf(LogstrataError);
      expect((error as LogstrataError).message).toContain(`character ${character}:`);
      expect((error as LogstrataError).message).toContain(message);
    }
  });
});

test('texts and fields in any mixture are rendered unchanged', () => {
  const text = fc.string().filter((value) => !value.includes('{') && !value.endsWith('-'));
  const name = fc.constantFrom('a', 'b', 'c_1', 'missing');
  const values = fc.record({ a: fc.string(), b: fc.string(), c_1: fc.string() });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(text, name)),
      text,
      values,
      (pieces, last, fields: Record<string, string>) => {
        const template = pieces.map(([before, field]) => `${before}{{.${field}}}`).join('') + last;
        const expected = pieces.map(([before, field]) => before + (fields[field] ?? '')).join('') + last;
        expect(compileTemplate(template).render((field) => fields[field])).toBe(expected);
        // The same template again, through the general path instead of the path for flat templates.
        expect(compileTemplate(`${template}{{if .missing}}{{end}}`).render((field) => fields[field])).toBe(
          expected,
        );
      },
    ),
  );
});

test('the compiler fails on any text only with a mistake in the template', () => {
  const words = [
    '{{',
    '}}',
    '{{-',
    '-}}',
    'if',
    'else',
    'end',
    '.a',
    '$x',
    ':=',
    '|',
    '(',
    ')',
    '"',
    '`',
    'eq',
    'printf "%d"',
    ' ',
    '1',
    '.',
    '/*',
    '*/',
    '\n',
    '\\',
    'é',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 20 }), (pieces) => {
      try {
        expect(typeof compileTemplate(pieces.join('')).render(() => 'v')).toBe('string');
      } catch (error) {
        expect(error).toBeInstanceOf(LogstrataError);
      }
    }),
    { numRuns: caseCount(1000, 200_000) },
  );
});
