import { setTimeout as delay } from 'node:timers/promises';
import type { AgentStore, Query } from '../../engine/index.js';
import { parseCursor } from '../../engine/core/cursor.js';
import { Followers, type FollowOptions } from '../../server/follow/followers.js';
import { ClientDouble } from './client-double.js';

/** Followers of one agent `web`. */
export function followersOf(
  store: AgentStore,
  options: Partial<FollowOptions> = {},
): { followers: Followers; logged: string[] } {
  const logged: string[] = [];
  const followers = new Followers({
    followersMax: 2000,
    queryTimeoutMs: 60_000,
    clientRateMin: 0,
    lookup: () => store,
    log: (message) => logged.push(message),
    ...options,
  });
  return { followers, logged };
}

/** Starts to follow, as a request does. */
export function follow(
  followers: Followers,
  store: AgentStore,
  query: Partial<Query> = {},
  after?: string,
  client: ClientDouble = new ClientDouble(),
): ClientDouble {
  const position = after === undefined ? undefined : parseCursor(after);
  const limit = position === undefined ? 100 : Number.MAX_SAFE_INTEGER;
  void followers.follow({
    agent: 'web',
    store,
    query: { limit, predicates: [], ...query, after: position },
    head: { status: 200, headers: {} },
    response: client,
  });
  return client;
}

/** Waits until no client has received anything for a while, and `count`, if given, returns true. */
export async function settled(
  clients: readonly ClientDouble[],
  isDone: () => boolean = () => true,
): Promise<void> {
  const seen = (): number => clients.reduce((sum, { reader }) => sum + reader.events.length, 0);
  const endMs = Date.now() + 60_000;
  for (let before = -1, quiet = 0; quiet < 4;) {
    await delay(20);
    const now = seen();
    quiet = now === before && isDone() ? quiet + 1 : 0;
    before = now;
    if (Date.now() > endMs) throw new Error('the streams do not come to rest');
  }
}
