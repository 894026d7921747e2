import { agentNames, questionOf, requestPath, type Question, type View } from './view.js';

/** Records per page: more than fit on a screen, and few enough to be rendered between two frames. */
export const pageRecords = 50;

/** Which page to request: the records after or before a cursor, or the newest ones without either. */
export interface PageAsk {
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly limit: number;
}

/** The path of the request for a page of records. */
export function pagePath(question: Question, { limit, after, before }: PageAsk): string {
  const more: (readonly [string, string])[] = [['limit', String(limit)]];
  if (after !== undefined) more.push(['after', after]);
  if (before !== undefined) more.push(['before', before]);
  return requestPath('query', question, more);
}

/** The path of the request for the agents. */
export const agentsPath = '/api/agents';

/** The path of the request for an agent's fields. */
export function fieldsPath(agent: string): string {
  return `/api/schema/${encodeURIComponent(agent)}`;
}

/** The headers that send a token; none without one. */
export function tokenHeaders(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

/** The paths of the requests that the page needs for its first rows, as far as they follow from the view alone. */
export function firstPaths(view: View): readonly string[] {
  const { agent, range, cursor, isLive } = view;
  if (agent === '') return [agentsPath];
  // The parameters of a time range need the name of the time field, and an open record is requested with its neighbours.
  const isNewest = range.kind === 'all' && (cursor === undefined || isLive);
  const question = questionOf(view, [], {});
  const canAsk = isNewest && question.refusal === undefined;
  return [
    ...agentNames(agent).map(fieldsPath),
    ...(canAsk ? [pagePath(question, { limit: pageRecords })] : []),
  ];
}

/**
 * Requests that are sent while the script of the page is still being loaded, so that the first rows appear sooner. The page takes each
 * answer where it would send the same request.
 */
export class FirstRequests {
  private readonly answers = new Map<string, Promise<Response>>();

  /** Sends GET requests to these paths. */
  send(paths: readonly string[], token: string | undefined): void {
    for (const path of paths) {
      const answer = fetch(path, { headers: tokenHeaders(token), cache: 'no-store' });
      // Whoever takes the answer handles the error.
      answer.catch(() => undefined);
      this.answers.set(path, answer);
    }
  }

  /** The answer to the request for a path, once; undefined where it was not requested. */
  take(path: string): Promise<Response> | undefined {
    const answer = this.answers.get(path);
    this.answers.delete(path);
    return answer;
  }

  /** Drops the answers that were not taken, which are soon out of date. */
  clear(): void {
    this.answers.clear();
  }
}
