import { signal } from '@preact/signals';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { LogRecord } from '../../server/viewer/state/record.js';
import { BrowserStore } from '../../server/viewer/state/browser-store.js';
import { openPreferences, ViewStore } from '../../server/viewer/state/kept-views.js';
import { Viewer } from '../../server/viewer/state/viewer.js';
import { recordsIn } from '../../server/viewer/state/record-window.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const count = 400;
const cursorOf = (n: number): string => (n + 0x100).toString(16).padStart(16, '0');
const lineOf = (n: number): string => `{"_cursor":"${cursorOf(n)}","time":${n},"message":"line ${n}"}\n`;
/** Longer than the page waits before it retries. */
const aWhileMs = 5000;

/** A request that the page waits for. */
interface Waiting {
  readonly url: URL;
  answer(): void;
  refuse(): void;
}

/** A server with one agent that answers each request on command, or at once. */
class Server {
  waiting: Waiting[] = [];
  /** The positions at which streams were requested. */
  readonly followed: (string | null)[] = [];
  /** The outcome of every request at once; if undefined, requests wait. */
  at: 'answer' | 'refuse' | undefined;

  schema = [
    { name: 'time', type: 'time' },
    { name: 'message', type: 'string' },
  ];

  constructor(private readonly names: readonly string[] = ['shop']) {}

  /** The waiting requests for the records of the table. */
  get rows(): readonly URL[] {
    return this.waiting
      .map(({ url }) => url)
      .filter((url) => url.pathname === '/api/query/shop' && !isKnown(url));
  }

  readonly fetch = (path: string, { signal: aborts, headers }: RequestInit): Promise<Response> =>
    new Promise((resolve, reject) => {
      const url = new URL(path, 'http://localhost');
      const isStream = new Headers(headers).get('accept') === 'text/event-stream';
      if (isStream) this.followed.push(url.searchParams.get('after'));
      const abort = (): void => reject(new DOMException('gone', 'AbortError'));
      aborts?.addEventListener('abort', abort);
      const end = (settle: () => void) => (): void => {
        aborts?.removeEventListener('abort', abort);
        settle();
      };
      const one: Waiting = {
        url,
        answer: end(() => resolve(this.response(url))),
        refuse: end(() => reject(new TypeError('Failed to fetch'))),
      };
      if (this.at !== undefined) one[this.at]();
      else this.waiting.push(one);
    });

  /** Answers or refuses all waiting requests of a kind. */
  async settle(what: 'answer' | 'refuse', isMeant: (url: URL) => boolean = () => true): Promise<void> {
    const meant = this.waiting.filter(({ url }) => isMeant(url));
    this.waiting = this.waiting.filter((one) => !meant.includes(one));
    for (const one of meant) one[what]();
    await vi.advanceTimersByTimeAsync(0);
  }

  /** From now on answers or refuses every request, including the waiting ones. */
  async become(at: 'answer' | 'refuse'): Promise<void> {
    this.at = at;
    await this.settle(at);
  }

  private response({ pathname, searchParams }: URL): Response {
    if (pathname === '/api/agents') return Response.json({ agents: this.names });
    if (pathname.startsWith('/api/count/')) return Response.json({ count });
    if (pathname.startsWith('/api/schema/')) return Response.json({ schema: this.schema });
    const limit = Number(searchParams.get('limit'));
    const [after, before] = [searchParams.get('after'), searchParams.get('before')];
    const inside = Array.from({ length: count }, (_, n) => n).filter(
      (n) => (after === null || cursorOf(n) > after) && (before === null || cursorOf(n) < before),
    );
    const page = after === null ? inside.slice(-limit) : inside.slice(0, limit);
    return new Response(page.map(lineOf).join(''));
  }
}

const isSchema = ({ pathname }: URL): boolean => pathname === '/api/schema/shop';
/** A request about which records exist, and not for the records of the table. */
const isKnown = ({ searchParams }: URL): boolean => ['1', '100'].includes(searchParams.get('limit') ?? '');
const isOlder = ({ searchParams }: URL): boolean => searchParams.has('before');

function viewerOf(server: Server, hash: string): Viewer {
  vi.stubGlobal('fetch', server.fetch);
  const history = { pushState: () => undefined, replaceState: () => undefined };
  const bar = { location: { hash }, history, addEventListener: () => undefined };
  const kept = new Map<string, string>();
  const store = new BrowserStore(() => ({
    length: 0,
    key: () => null,
    clear: () => kept.clear(),
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  }));
  const viewer = new Viewer(new ViewStore(bar), openPreferences(store, signal(false)), store, store);
  viewer.start();
  return viewer;
}

const shown = ({ window }: Viewer): readonly LogRecord[] => recordsIn(window.state.value);

/** Nothing is missing, and no failure is shown. */
function expectWhole(viewer: Viewer): void {
  const { status, failure, older, newer } = viewer.window.state.value;
  expect({ status, failure }).toEqual({ status: 'ready', failure: undefined });
  expect([older.kind, newer.kind]).not.toContain('failed');
  expect(viewer.agents.value).toMatchObject({ names: ['shop'], failure: undefined });
  expect(viewer.fields.value).toHaveLength(2);
  expect(viewer.recordsExtent.value).toBeDefined();
  expect(shown(viewer).at(-1)?.cursor).toBe(cursorOf(count - 1));
}

it('keeps its rows when the server becomes unreachable while the page still finds out which records exist', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop');
  await server.settle('answer');
  void viewer.window.extend('older');
  await server.settle('refuse', isKnown);
  await server.settle('refuse', isOlder);
  await server.become('refuse');
  await vi.advanceTimersByTimeAsync(10 * aWhileMs);
  expect(shown(viewer)).toHaveLength(50);
  expect(viewer.window.state.value.older.kind).toBe('failed');
  await server.become('answer');
  await vi.advanceTimersByTimeAsync(aWhileMs);
  expectWhole(viewer);
  expect(shown(viewer)).toHaveLength(100);
});

it('keeps the fields and the known extent while it retries', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop');
  await server.become('answer');
  server.at = undefined;
  viewer.askAgain();
  await vi.advanceTimersByTimeAsync(0);
  expect(viewer.fields.value).toHaveLength(2);
  expect(viewer.recordsExtent.value).toBeDefined();
  await server.become('answer');
  expectWhole(viewer);
});

it('drops the figures of an earlier question when a query fails whose own are still being counted', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop');
  await server.become('answer');
  expect(viewer.counted.value.count).toBe(count);
  server.at = undefined;
  viewer.change({ text: 'line' });
  await vi.advanceTimersByTimeAsync(0);
  expect(viewer.counted.value).toMatchObject({ kind: 'loading', count });
  await server.settle('refuse', ({ pathname }) => pathname === '/api/query/shop');
  expect(viewer.window.state.value.status).toBe('failed');
  expect(viewer.counted.value.count).toBeUndefined();
  await server.settle('answer', ({ pathname }) => pathname === '/api/count/shop');
  expect(viewer.counted.value).toMatchObject({ kind: 'ready', count });
});

it('requests its rows again while it waits to request older ones', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop');
  await server.become('answer');
  await server.become('refuse');
  await viewer.window.extend('older');
  viewer.askAgain();
  await vi.advanceTimersByTimeAsync(0);
  expect(viewer.window.state.value.status).toBe('failed');
  await vi.advanceTimersByTimeAsync(10 * aWhileMs);
  await server.become('answer');
  await vi.advanceTimersByTimeAsync(aWhileMs);
  expectWhole(viewer);
});

it('follows from its newest record on, also if the server was unreachable at first', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop?live=1');
  await server.become('refuse');
  await vi.advanceTimersByTimeAsync(aWhileMs);
  expect(server.followed).toEqual([]);
  await server.become('answer');
  await vi.advanceTimersByTimeAsync(10 * aWhileMs);
  expectWhole(viewer);
  expect(new Set(server.followed)).toEqual(new Set([cursorOf(count - 1)]));
  viewer.tail.stop();
});

it('requests the first rows with a text search before the fields are known, and only once', async () => {
  const server = new Server();
  const viewer = viewerOf(server, '#/shop?text=line');
  expect(server.rows.map(({ search }) => search)).toEqual(['?*__like=line&limit=50']);
  await server.settle('answer', isSchema);
  expect(server.rows).toHaveLength(1);
  await server.become('answer');
  expectWhole(viewer);
});

it('requests rows again without the text if the agent turns out to have no string fields', async () => {
  const server = new Server();
  server.schema = [
    { name: 'time', type: 'time' },
    { name: 'status', type: 'int' },
  ];
  const viewer = viewerOf(server, '#/shop?text=line');
  await server.settle('answer', isSchema);
  expect(server.rows.at(-1)?.search).toBe('?limit=50');
  await server.become('answer');
  expectWhole(viewer);
});

it('reports that there is no agent, instead of an unreachable server, once the server is back', async () => {
  const server = new Server([]);
  const viewer = viewerOf(server, '#/');
  await server.become('refuse');
  expect(viewer.agents.value.failure?.kind).toBe('unreachable');
  await server.become('answer');
  await vi.advanceTimersByTimeAsync(aWhileMs);
  expect(viewer.agents.value).toMatchObject({ names: [], failure: undefined });
});

const oneStep = fc.oneof(
  fc.record({ what: fc.constantFrom('answer', 'refuse'), nth: fc.nat(5) }),
  fc.constantFrom('answers', 'is gone', 'is gone', 'is slow'),
  fc.constantFrom('older', 'again', 'wait'),
);
type Step = typeof oneStep extends fc.Arbitrary<infer T> ? T : never;

async function take(viewer: Viewer, server: Server, step: Step): Promise<void> {
  switch (step) {
    case 'answers':
      return server.become('answer');
    case 'is gone':
      return server.become('refuse');
    case 'is slow':
      server.at = undefined;
      return;
    case 'older':
      void viewer.window.extend(step);
      break;
    case 'again':
      viewer.askAgain();
      break;
    case 'wait':
      await vi.advanceTimersByTimeAsync(aWhileMs);
      break;
    default: {
      const one = server.waiting[step.nth % server.waiting.length];
      await server.settle(step.what, (url) => url === one?.url);
    }
  }
  await vi.advanceTimersByTimeAsync(0);
}

it('is complete once the server is back, whatever failed before and in whatever order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('#/', '#/shop', '#/shop?text=line'),
      fc.boolean(),
      fc.array(oneStep, { maxLength: 16 }),
      async (hash, isThere, steps) => {
        const server = new Server();
        const viewer = viewerOf(server, hash);
        if (isThere) await server.become('answer');
        for (const step of steps) await take(viewer, server, step);
        await server.become('answer');
        await vi.advanceTimersByTimeAsync(4 * aWhileMs);
        expectWhole(viewer);
      },
    ),
    { numRuns: caseCount(150) },
  );
});
