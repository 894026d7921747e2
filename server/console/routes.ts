import type { ServerFigures } from '../metrics/server-figures.js';
import { ServerMetrics } from '../metrics/server-metrics.js';
import type { Admission } from '../pace/admission.js';
import type { QueryRoute } from '../route/query-route.js';
import { AgentsRoute } from './agents-route.js';
import { BorderRoute, type WrittenAgents } from './border-route.js';
import type { ConsoleAgents } from './console-agent.js';
import type { ConsoleRoutes } from './console-route.js';
import { CountRoute, type CountOptions } from './count-route.js';
import { MetricsRoute } from './metrics-route.js';
import { RowsRoute } from './rows-route.js';
import { SchemaRoute } from './schema-route.js';
import { SlowRoute } from './slow-route.js';
import { ViewerRoute } from './viewer-route.js';

/** What the routes of the console use. */
export interface ServedThings {
  readonly agents: ConsoleAgents;
  /** The same agents as readers on other machines query them; undefined where this server is a reader itself. */
  readonly written?: WrittenAgents | undefined;
  readonly route: QueryRoute;
  /** The slots of the query route, which counts use as well. */
  readonly admission: Admission;
  readonly counts: Omit<CountOptions, 'tally' | 'slow'>;
  /** Returns the current figures of the server. */
  readonly figures: () => Promise<ServerFigures>;
}

/** The routes of the console that need an open archive. */
export function makeRoutes({
  agents,
  written,
  route,
  admission,
  counts,
  figures,
}: ServedThings): ConsoleRoutes {
  const forReaders =
    written === undefined
      ? {}
      : {
          '/api/border/': new BorderRoute(written),
          '/api/rows/': new RowsRoute(written, admission, counts),
        };
  return {
    ...forReaders,
    '/metrics': new MetricsRoute(new ServerMetrics(figures)),
    '/api/query/': route,
    '/api/count/': new CountRoute(agents, admission, { ...counts, tally: route.tally, slow: route.slow }),
    '/api/agents': new AgentsRoute(agents),
    '/api/schema/': new SchemaRoute(agents),
    '/api/slow': new SlowRoute(route.slow),
    '/': new ViewerRoute(),
  };
}
