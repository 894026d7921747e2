import { anyField, timeFieldOf, type Field } from './field.js';
import { filterParameters, type Filter } from './filter.js';
import type { Span } from './time-range.js';
import type { View } from './view.js';

/** Which records of an agent to request, without position and limit. */
export interface Question {
  readonly agent: string;
  readonly parameters: readonly (readonly [string, string])[];
}

/** A time as a parameter. ISO 8601 is used, as the route accepts it for every year, including times around the epoch. */
export function momentParameter(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/**
 * The field in which a view searches for its text; undefined for an agent without string fields. An empty list of fields means that they
 * are not known yet.
 */
export function searchedField(view: View, fields: readonly Field[]): string | undefined {
  const mayHaveText = fields.length === 0 || fields.some(({ type }) => type === 'string');
  return mayHaveText ? (view.textField ?? anyField) : undefined;
}

/** The question of a view. `span` is the view's range at a given time; it is fixed, so that all pages get the same question. */
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

/** The filters on the agent's time field for a span; none where the agent has no such field. */
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

/** The path and query string of a request to an agent's route. */
export function requestPath(
  route: 'query' | 'count',
  { agent, parameters }: Question,
  more: readonly (readonly [string, string])[] = [],
): string {
  const query = new URLSearchParams(
    [...parameters, ...more].map(([name, value]): [string, string] => [name, value]),
  ).toString();
  return `/api/${route}/${encodeURIComponent(agent)}${query === '' ? '' : `?${query}`}`;
}
