import { createServer, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { caseCount, fc } from '../cases.js';
import type { Archive } from '../../engine/archive/archive.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { ReaderArchive } from '../../engine/far/reader-archive.js';
import { borderOf, decodeBorder, encodeBorder, schemaTag } from '../../engine/far/border.js';
import type { FieldPredicate, Predicate } from '../../engine/core/schema.js';
import { isLogstrataError, LogstrataError } from '../../engine/core/errors.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { FailedTokens, ListenerGuard } from '../../server/http/access.js';
import { digestOf, newTokenText } from '../../server/http/token-folder.js';
import { filterText, HttpWriterClient } from '../../server/http/http-writer-client.js';
import { readParameters } from '../../server/http/parameters.js';
import { load, noon, openOn, schema, textOf } from '../engine/store/memory-archive.js';
import { answerOf } from '../model/answer.js';
import { datasets, predicates, strangeSchema } from '../model/arbitraries.js';
import { ownCertificate } from '../server/own-certificate.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { WriterBed } from './writer-bed.js';

const workers = new WorkerPool(0);
let archive: Archive;
let writer: AgentStore;

beforeAll(async () => {
  archive = await openOn(new MemoryDirectory());
  writer = await archive.agent('a', schema);
  await load(
    writer,
    Array.from({ length: 500 }, (_, i) => [BigInt(noon - 1000 + i), BigInt(i), null, `message ${i}`]),
  );
});
afterAll(() => archive.close());

function doorTo(address: string, token: string | null = null, ca: string | null = null): HttpWriterClient {
  const door = new HttpWriterClient({ address, token, ca });
  onTestFinished(() => door.close());
  return door;
}

it('sends requests over TLS with a token, and reports a mistake in either', async () => {
  const { id, text } = newTokenText();
  const rights = { name: null, agents: ['a'], createdMs: 0, expiresMs: null, revokedMs: null };
  const guard = new ListenerGuard('console', new FailedTokens(() => undefined));
  guard.take([{ id, digest: digestOf(text), listeners: ['console'], ...rights }]);
  const own = ownCertificate('writer');
  const { cert, key } = { cert: Buffer.from(own.cert), key: Buffer.from(own.key) };
  const certificate = { cert, key, names: 'localhost', notBeforeMs: 0, expiresMs: Infinity };
  const bed = await WriterBed.start(new Map([['a', writer]]), { guard, certificate });
  onTestFinished(() => bed.close());
  const { address } = bed.console;
  expect(address).toMatch(/^https:/);

  const reader = new ReaderArchive({
    writer: doorTo(address, text, own.cert),
    cluster: undefined,
    lagMsMax: 0,
    workers,
  });
  const store = reader.agent('a');
  await store.snapshot();
  const all = { limit: 1000, predicates: [] };
  expect(await textOf((await store.scan(all)).lines)).toBe(await textOf((await writer.scan(all)).lines));

  const failing = (door: HttpWriterClient): Promise<unknown> =>
    door.border('a', null).catch((error: unknown) => error);
  expect(String(await failing(doorTo(address, null, own.cert)))).toContain('401: a token is required');
  expect(String(await failing(doorTo(address, text)))).toContain('self-signed certificate');
  expect(String(await doorTo(address, text, own.cert).border('b', null).catch(String))).toContain(
    'answers 403: this token may not read the agent',
  );
});

/** A server that answers as the test defines. */
async function answering(answer: (response: ServerResponse, url: string) => void): Promise<string> {
  const server: Server = createServer((request, response) => answer(response, request.url!));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

it('cancels a request at the writer when its client has gone', async () => {
  let isGone: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (isGone = resolve));
  const abort = new AbortController();
  const address = await answering((response) => {
    response.on('close', () => isGone());
    response.write('x');
    abort.abort(new LogstrataError('cancelled', 'nobody waits'));
  });
  const position = { partition: 1, ordinal: 1 };
  const range = { from: position, to: position, direction: 'forward' as const, limit: 1 };
  const question = {
    agent: 'a',
    tag: '',
    schema,
    ...range,
    predicates: [],
    fields: [],
    signal: abort.signal,
  };
  await expect(doorTo(address).rows(question)).rejects.toThrow('nobody waits');
  await gone;
});

it('rejects incomplete answers, and anything that is not an answer', async () => {
  const border = encodeBorder(await borderOf(writer), null);
  const nonsense: readonly ((response: ServerResponse) => void)[] = [
    (response) =>
      void response.writeHead(200, { 'content-length': '999' }).write('x', () => response.destroy()),
    (response) => void response.end('not JSON'),
    (response) => void response.end('{}'),
    (response) => void response.end(border.replace(/"version":\d+/, '"version":99')),
    (response) => void response.end(border.replace('"agent":"a"', '"agent":"b"')),
    (response) => void response.end(border.replace(/"runs":\[\d+,/, '"runs":[1,1,5,1,2,9,')),
    (response) => void response.writeHead(500).end('oh'),
    (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  ];
  for (const answer of nonsense) {
    const address = await answering(answer);
    const door = doorTo(address);
    const reader = new ReaderArchive({ writer: door, cluster: undefined, lagMsMax: 0, workers });
    await expect(reader.agent('a').snapshot()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(address) as string,
    });
  }
});

it('reads any valid border, and reports a mistake in any other', async () => {
  const border = encodeBorder(await borderOf(writer), null);
  expect(decodeBorder(border, null).near).toEqual([
    { partition: expect.any(Number) as number, firstOrdinal: 1, firstRow: 0, rows: 500 },
  ]);
  fc.assert(
    fc.property(fc.nat(border.length - 1), fc.string({ maxLength: 4 }), fc.nat(6), (at, text, removed) => {
      try {
        decodeBorder(border.slice(0, at) + text + border.slice(at + removed), null);
      } catch (error) {
        if (!isLogstrataError(error) || error.code !== 'damaged') throw error;
      }
    }),
    { numRuns: caseCount(500), endOnFailure: true },
  );
});

/** A filter in which negative zeros are positive, since they are equal. */
function withPlainZeros(predicate: Predicate): Predicate {
  if (predicate.kind === 'float') return { ...predicate, value: predicate.value + 0 };
  if (predicate.kind !== 'set' && predicate.kind !== 'any') return predicate;
  return {
    ...predicate,
    members: predicate.members.map((member) => withPlainZeros(member) as FieldPredicate),
  } as Predicate;
}

it('writes filters in the form that the writer reads', () => {
  fc.assert(
    fc.property(datasets(20), fc.gen(), (dataset, draw) => {
      // Nothing is asked for an empty group.
      const some = predicates(dataset).filter((each) => each.kind !== 'any' || each.members.length > 0);
      const asked = fc.array(some, { maxLength: 1 });
      const drawn = draw(() => asked).map(withPlainZeros);
      const context = { schema: strangeSchema, timezone: 'UTC', now: noon };
      const read = readParameters(filterText(drawn, strangeSchema).join('&'), [], context);
      const matches = (all: readonly Predicate[]) => answerOf(dataset, { limit: 100, predicates: all });
      expect(matches(read.predicates)).toBe(matches(drawn));
      if (drawn[0]?.kind !== 'any') expect(read.predicates).toEqual(drawn);
    }),
    { numRuns: caseCount(200), endOnFailure: true },
  );
});

it('compares fields by name, type and order', () => {
  const [first, ...rest] = schema.fields;
  const tags = [
    schema,
    { fields: rest },
    { fields: [...rest, first!] },
    { fields: [{ ...first!, type: 'int' as const }, ...rest] },
    { fields: [{ ...first!, name: 'other' }, ...rest] },
  ].map(schemaTag);
  expect(new Set(tags).size).toBe(tags.length);
});
