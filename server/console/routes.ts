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

/** What the routes answer of. */
export interface ServedThings {
  readonly agents: ConsoleAgents;
  /** The same, for readers on other machines; undefined where this server is one. */
  readonly written?: WrittenAgents | undefined;
  readonly route: QueryRoute;
  /** Gives slots to counts, of those that the route has. */
  readonly admission: Admission;
  readonly counts: Omit<CountOptions, 'tally' | 'slow'>;
  /** Takes the figures of the server anew. */
  readonly figures: () => Promise<ServerFigures>;
}

/** All that the console answers for an open archive. */
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
