import type { Query } from '../../engine/scan/query.js';
import { comparePositions } from '../../engine/core/cursor.js';
import { problemBody, ProblemError, problemOf } from '../../server/http/problem.js';
import { parseAgentPath, parseQueryRequest } from '../../server/http/query-request.js';
import type { ModelRecord } from '../model/dataset.js';
import type { Answer, Answerer, CaseDataset, Commit, HttpRequest, OpenedStore } from './answerer.js';

/** Reads a query to its end; this is the part in which answerers without HTTP differ. */
export type QueryReader = () => Promise<string>;

/** The query of a request as the server parses it. Throws a `ProblemError`. */
export function queryOf(dataset: CaseDataset, request: HttpRequest): Query {
  const mark = request.target.indexOf('?');
  const path = mark < 0 ? request.target : request.target.slice(0, mark);
  const agent = parseAgentPath(path, 'query');
  if (agent !== dataset.name) throw new ProblemError(404, `there is no agent ${JSON.stringify(agent)}`);
  return parseQueryRequest(mark < 0 ? '' : request.target.slice(mark + 1), {
    schema: dataset.schema,
    limitMax: 1_000_000,
    limitDefault: 100,
    now: dataset.nowMs,
    timezone: 'UTC',
  });
}

/** Parses a request with the server's own parser, and turns failures into its problems. */
export async function beginInProcess(
  dataset: CaseDataset,
  request: HttpRequest,
  start: (query: Query) => QueryReader | Promise<QueryReader>,
): Promise<() => Promise<Answer>> {
  const headers = new Map<string, string>();
  const failure = (error: unknown): Answer => {
    const problem = problemOf(error);
    return { status: problem.status, body: problemBody(problem), headers };
  };
  try {
    const read = await start(queryOf(dataset, request));
    return async () => {
      try {
        return { status: 200, body: await read(), headers };
      } catch (error) {
        return failure(error);
      }
    };
  } catch (error) {
    return () => Promise.resolve(failure(error));
  }
}

/** An answerer over the records committed so far, which has nothing to restart or compact. */
export function recordsAnswerer(
  name: string,
  start: (dataset: CaseDataset, records: readonly ModelRecord[], query: Query) => QueryReader,
): Answerer {
  return {
    name,
    isHttp: false,
    open: (dataset): Promise<OpenedStore> => {
      let records: readonly ModelRecord[] = [];
      return Promise.resolve({
        commit: (commit: Commit) => {
          records = [...records, ...commit.records].sort((a, b) => comparePositions(a.position, b.position));
          return Promise.resolve();
        },
        begin: (request) => beginInProcess(dataset, request, (query) => start(dataset, records, query)),
        restart: () => Promise.resolve(),
        compact: () => Promise.resolve(),
        close: () => Promise.resolve(),
      });
    },
  };
}
