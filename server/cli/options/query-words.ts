import { Option } from 'commander';
import type { LineFormat } from '../../../engine/index.js';
import { UsageError } from '../output/failure.js';

/** The values of the options that are parameters of a query, each as often as it was given. */
export interface QueryBounds {
  readonly limit?: readonly string[];
  readonly after?: readonly string[];
  readonly before?: readonly string[];
  readonly fields?: readonly string[];
}

/**
 * Collects the values of a repeated option. Commander would keep only the last one; the route refuses repeated parameters, and so shall the
 * command.
 */
export function collectBound(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** The option `--after` or `--before` of the commands that take a query. */
export function cursorOption(name: 'after' | 'before'): Option {
  return new Option(`--${name} <cursor>`, `only records ${name} this _cursor`).argParser(collectBound);
}

/** The option `--limit` of the commands that take a query. */
export function limitOption(what: string): Option {
  return new Option('-n, --limit <n>', what).argParser(collectBound);
}

/** The option `--fields` of the commands that write records. */
export function fieldsOption(): Option {
  return new Option('--fields <names>', 'only these fields, in this order: time,level,message').argParser(
    collectBound,
  );
}

/**
 * Builds the query string of a command's words, each `field__op=value` with the value as typed (not URL-encoded). So the command line and
 * the route parse queries with the same code, and refuse the same ones. Throws a `UsageError` for a word without `=`.
 */
export function rawQueryOf(words: readonly string[], bounds: QueryBounds, format?: LineFormat): string {
  const { limit, after, before, fields } = bounds;
  const pieces = words.map((word) => {
    const equals = word.indexOf('=');
    if (equals <= 0) {
      throw new UsageError(
        `a filter is field__operator=value, not ${JSON.stringify(word)}`,
        'For example: status__gte=500, message__like=timeout, time__since=2h',
      );
    }
    return encodePair(word.slice(0, equals), word.slice(equals + 1));
  });
  return [
    ...pieces,
    ...parameterPieces({ limit, after, before, fields, format: format === undefined ? undefined : [format] }),
  ].join('&');
}

/** The options of a command as parameters of the same names, URL-encoded; a repeated option gives several. */
export function parameterPieces(options: Readonly<Record<string, readonly string[] | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, values = []]) =>
    values.map((value) => encodePair(name, value)),
  );
}

function encodePair(name: string, value: string): string {
  return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
}

/** The part of `--help` about filters, for all commands that take them. */
export const filterHelp = `
Filters are words field__operator=value; all of them must hold. Quote what the shell would change.
  int, float, time   eq ne gt gte lt lte in
  string             exact like prefix suffix (the last three ignore case),
                     ne not_like not_prefix not_suffix, in
  *                  like not_like: any string field: '*__like=timeout'
  bool               eq ne in, with true or false
  time               since until: "2026-11-18 10:00:00", 2026-11-18,
                     or a span back from now: 15m, 2h, 7d
Repeat in to allow several values: level__in=error level__in=warn`;
