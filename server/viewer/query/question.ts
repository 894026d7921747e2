import { anyField, timeFieldOf, type Field } from './field.js';
import { filterParameters, type Filter } from './filter.js';
import type { Span } from './time-range.js';
import type { View } from './view.js';

/** What is asked of an agent: which records, but not how many or from where on. */
export interface Question {
  readonly agent: string;
  readonly parameters: readonly (readonly [string, string])[];
}

/** Times in a form that the route takes for every year, the one of the epoch included. */
export function momentParameter(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** The field in which a view searches for its text; undefined for an agent that has no text. An agent without fields is one whose are not known yet. */
export function searchedField(view: View, fields: readonly Field[]): string | undefined {
  const mayHaveText = fields.length === 0 || fields.some(({ type }) => type === 'string');
  return mayHaveText ? (view.textField ?? anyField) : undefined;
}

/** What a view asks of an agent with these fields. `span` is its range at some moment, so that all of its pages ask for the same. */
export function questionOf(
  view: View,
  fields: readonly Field[],
  span: Span,
  filters: readonly Filter[] = view.filters,
): Question {
  const parameters = [...filterParameters(filters)];
  const searched = searchedField(view, fields);
  if (view.text !== '' && searched !== undefined) parameters.push([`${searched}__like`, view.text]);
  return { agent: view.agent, parameters: [...parameters, ...spanParameters(fields, span)] };
}

/** A range as filters of the agent's time field; none where it has no such field. */
export function spanParameters(
  fields: readonly Field[],
  { sinceMs, untilMs }: Span,
): readonly (readonly [string, string])[] {
  const time = timeFieldOf(fields);
  if (time === undefined) return [];
  const parameters: (readonly [string, string])[] = [];
  if (sinceMs !== undefined) parameters.push([`${time}__since`, momentParameter(sinceMs)]);
  if (untilMs !== undefined) parameters.push([`${time}__until`, momentParameter(untilMs)]);
  return parameters;
}

/** The path and query string of a request to one of the routes of an agent. */
export function requestPath(
  route: 'query' | 'count',
  { agent, parameters }: Question,
  more: readonly (readonly [string, string])[] = [],
): string {
  const said = new URLSearchParams(
    [...parameters, ...more].map(([name, value]): [string, string] => [name, value]),
  ).toString();
  return `/api/${route}/${encodeURIComponent(agent)}${said === '' ? '' : `?${said}`}`;
}
