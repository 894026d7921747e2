import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { fc } from '../cases.js';
import { Access } from '../../server/http/access.js';
import { tokensMax } from '../../server/http/http-limits.js';
import {
  listenerNames,
  type Token,
  parseTokenFile,
  tokenFileBytes,
  TokenFolder,
} from '../../server/http/token-folder.js';
import { isLogstrataError } from '../../engine/core/errors.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';

type Wanted = Parameters<TokenFolder['add']>[0];

const forAll: Wanted = {
  name: 'grafana',
  agents: null,
  listeners: ['query', 'console'],
  createdMs: Date.UTC(2026, 0, 1),
  expiresMs: null,
  revokedMs: null,
};

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-tokens-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it('a token is stored as its digest, in a file that only its owner can read', async () => {
  const location = join(dataFolder(), 'data');
  const folder = await TokenFolder.open(location, { create: true });
  const { token, text } = await folder.add({ ...forAll, agents: ['nginx'] });
  expect(text).toMatch(/^logstrata_[0-9a-f]{8}_[A-Za-z0-9_-]{43}$/);
  expect(await folder.list()).toEqual([token]);
  const [name, ...others] = readdirSync(join(location, '.tokens'));
  expect(others).toEqual([]);
  const path = join(location, '.tokens', name!);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const written = readFileSync(path, 'utf8');
  expect(written).not.toContain(text.slice('logstrata_00000000_'.length));
  expect(JSON.parse(written)).toMatchObject({ name: 'grafana', agents: ['nginx'] });
});

it('changes that many commands make at once are all kept', async () => {
  const location = dataFolder();
  const commands = await Promise.all(Array.from({ length: 20 }, () => TokenFolder.open(location)));
  const made = await Promise.all(commands.map((folder) => folder.add(forAll)));
  await Promise.all(
    commands.map((folder, i) => (i % 2 === 0 ? folder.revoke(made[i]!.token.id, 5) : folder.add(forAll))),
  );
  const tokens = await commands[0]!.list();
  expect(tokens).toHaveLength(30);
  const revoked = tokens.filter(({ revokedMs }) => revokedMs === 5).map(({ id }) => id);
  expect(revoked.sort()).toEqual(
    made
      .filter((_, i) => i % 2 === 0)
      .map(({ token }) => token.id)
      .sort(),
  );
  expect(readdirSync(join(location, '.tokens'))).toHaveLength(30);
});

it('a revoked token keeps the time of its revocation, and an unknown one is an error', async () => {
  const folder = await TokenFolder.open(dataFolder());
  const { token } = await folder.add(forAll);
  await folder.revoke(token.id, 5);
  expect((await folder.revoke(token.id, 9)).revokedMs).toBe(5);
  await expect(folder.revoke('00000000', 9)).rejects.toMatchObject({ code: 'not_found' });
});

it('a token can be made where a new file takes the place of one with its name', async () => {
  const directory = Object.assign(new MemoryDirectory(), { replacesWhole: true as const });
  const folder = TokenFolder.of(directory);
  const { token } = await folder.add(forAll);
  expect(await folder.list()).toEqual([token]);
  expect(await directory.list('.tokens')).toEqual([`${token.id}.json`]);
});

it('a listener requires tokens from its first token on until all are cleared', async () => {
  const location = dataFolder();
  const access = await Access.open(location, () => undefined);
  const folder = await TokenFolder.open(location);
  expect([access.query.isClosed, access.console.isClosed]).toEqual([false, false]);
  const { token } = await folder.add({ ...forAll, listeners: ['console'] });
  await access.reload();
  expect([access.query.isClosed, access.console.isClosed]).toEqual([false, true]);
  await folder.add({ ...forAll, listeners: ['query'], expiresMs: 0 });
  await folder.revoke(token.id, 0);
  await access.reload();
  expect([access.query.isClosed, access.console.isClosed]).toEqual([true, true]);
  await folder.clear();
  expect(existsSync(join(location, '.tokens'))).toBe(false);
  await access.reload();
  expect([access.query.isClosed, access.console.isClosed]).toEqual([false, false]);
});

it('a copy has exactly the tokens of the data folder', async () => {
  const [here, copy] = [await TokenFolder.open(dataFolder()), await TokenFolder.open(dataFolder())];
  await copy.copy(here);
  expect(await copy.list()).toEqual([]);
  const { token } = await here.add(forAll);
  await copy.add(forAll);
  await copy.copy(here);
  expect(await copy.list()).toEqual([token]);
  await here.revoke(token.id, 5);
  await copy.copy(here);
  expect(await copy.list()).toEqual(await here.list());
  expect(await copy.listeners()).toEqual(listenerNames);
  await here.clear();
  await copy.copy(here);
  expect([await copy.list(), await copy.listeners()]).toEqual([[], []]);
});

it('lost files of tokens open no listener: only clearing the tokens does', async () => {
  const location = dataFolder();
  const log: string[] = [];
  const folder = await TokenFolder.open(location);
  await folder.add({ ...forAll, listeners: ['console'] });
  const running = await Access.open(location, (message) => log.push(message));
  expect(log).toEqual([]);
  // A copy that the shell makes of `data/*` lacks what begins with a dot.
  const copy = dataFolder();
  for (const name of readdirSync(location))
    if (!name.startsWith('.')) cpSync(join(location, name), join(copy, name), { recursive: true });
  rmSync(join(location, '.tokens'), { recursive: true });
  await running.reload();
  for (const access of [
    running,
    ...(await Promise.all([location, copy].map((at) => Access.open(at, () => undefined)))),
  ])
    expect([access.query.isClosed, access.console.isClosed]).toEqual([false, true]);
  expect(log).toEqual([expect.stringContaining('the console listener requires a token')]);
  await (await TokenFolder.open(copy)).add({ ...forAll, listeners: ['query'] });
  const restored = await Access.open(copy, () => undefined);
  expect([restored.query.isClosed, restored.console.isClosed]).toEqual([true, true]);
  const before = await running.fingerprint();
  await folder.clear();
  expect(await running.fingerprint()).not.toBe(before);
  await running.reload();
  expect([running.query.isClosed, running.console.isClosed]).toEqual([false, false]);
});

it('tokens of an earlier version are required from then on, whatever becomes of them', async () => {
  const location = dataFolder();
  await (await TokenFolder.open(location)).add(forAll);
  for (const name of readdirSync(location)) if (!name.startsWith('.')) rmSync(join(location, name));
  await Access.open(location, () => undefined);
  rmSync(join(location, '.tokens'), { recursive: true });
  expect((await Access.open(location, () => undefined)).query.isClosed).toBe(true);
});

it('a data folder that is gone opens no listener', async () => {
  const location = join(dataFolder(), 'data');
  const access = await Access.open(location, () => undefined);
  expect(await access.reload()).toEqual([]);
  await (await TokenFolder.open(location, { create: true })).add(forAll);
  await access.reload();
  rmSync(location, { recursive: true });
  await expect(access.reload()).rejects.toMatchObject({ code: 'not_found' });
  expect([access.query.isClosed, access.console.isClosed]).toEqual([true, true]);
});

it('an unusable token file is named, and the tokens read before stay valid', async () => {
  const location = dataFolder();
  const folder = await TokenFolder.open(location);
  await folder.add(forAll);
  const access = await Access.open(location, () => undefined);
  const path = join(location, '.tokens/0badf00d.json');
  for (const [content, complaint] of [
    ['', 'is not JSON'],
    ['{"version":1}', '"sha256" should be a text'],
    ['{"version":2}', 'this program supports version 1'],
    ['x'.repeat(100_000), 'more than 32768 bytes'],
  ] as const) {
    writeFileSync(path, content);
    await expect(access.reload()).rejects.toThrow(path);
    await expect(access.reload()).rejects.toThrow(complaint);
    expect(access.query.isClosed).toBe(true);
  }
  // The file of a command that was killed does not count as a token.
  rmSync(path);
  writeFileSync(join(location, '.tokens/0badf00d.77.new'), '');
  expect(await access.reload()).toHaveLength(1);
});

it(`there are at most ${tokensMax} tokens`, async () => {
  const location = dataFolder();
  const folder = await TokenFolder.open(location);
  mkdirSync(join(location, '.tokens'));
  for (let i = 0; i < tokensMax; i++)
    writeFileSync(join(location, '.tokens', `${String(i).padStart(8, '0')}.json`), '{}');
  await expect(folder.add(forAll)).rejects.toMatchObject({ code: 'limit' });
});

const time = fc.integer({ min: 0, max: 4_000_000_000_000 });

const anyToken: fc.Arbitrary<Token> = fc.record({
  id: fc.constant('0123abcd'),
  digest: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
  name: fc.option(fc.string()),
  agents: fc.option(fc.array(fc.constantFrom('nginx', 'app', 'a.b-c_d'))),
  listeners: fc.subarray([...listenerNames]),
  createdMs: time,
  expiresMs: fc.option(time),
  revokedMs: fc.option(time),
});

it('a token is read back from its file unchanged', () => {
  fc.assert(
    fc.property(anyToken, (token) => {
      expect(parseTokenFile(token.id, tokenFileBytes(token).toString())).toEqual(token);
    }),
  );
});

it('any other file is refused with a message', () => {
  const changed = fc.tuple(anyToken, fc.nat(), fc.nat({ max: 255 })).map(([token, at, byte]) => {
    const bytes = tokenFileBytes(token);
    bytes[at % bytes.length] = byte;
    return bytes.toString('latin1');
  });
  fc.assert(
    fc.property(fc.oneof(changed, fc.json(), fc.string()), (text) => {
      try {
        parseTokenFile('0123abcd', text);
      } catch (error) {
        expect(isLogstrataError(error)).toBe(true);
      }
    }),
  );
});
