import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FailedTokens, ListenerGuard } from '../../server/http/access.js';
import {
  failingClientsMax,
  failureDelayMsMax,
  failuresAtOnce,
  failuresForgottenMs,
  slowedAnswersMax,
  slowedAnswersOfClientMax,
} from '../../server/http/http-limits.js';
import { digestOf, newTokenText, type Token } from '../../server/http/token-folder.js';
import { ProblemError } from '../../server/http/problem.js';

const nowMs = Date.UTC(2026, 0, 15);

function made(rights: Partial<Token> = {}): { token: Token; text: string } {
  const { id, text } = newTokenText();
  const token: Token = {
    id,
    digest: digestOf(text),
    name: null,
    agents: null,
    listeners: ['query'],
    createdMs: 0,
    expiresMs: null,
    revokedMs: null,
    ...rights,
  };
  return { token, text };
}

let logged: string[] = [];

beforeEach(() => {
  logged = [];
});

function guardWith(...tokens: Token[]): ListenerGuard {
  const guard = new ListenerGuard('query', new FailedTokens((message) => logged.push(message)));
  guard.take(tokens);
  return guard;
}

/** The status and detail of an immediate refusal; undefined if the header is accepted. */
function refusal(guard: ListenerGuard, header: string | undefined, client = 'c'): ProblemError | undefined {
  try {
    guard.identify(header, client, nowMs);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ProblemError);
    const problem = error as ProblemError;
    return problem.delayMs > 0 ? undefined : problem;
  }
}

describe('a guard', () => {
  it('accepts everybody if there are no tokens for its listener', () => {
    const guard = guardWith(made({ listeners: ['console'] }).token);
    expect(refusal(guard, undefined)).toBeUndefined();
    expect(refusal(guard, 'Basic eDp5')).toBeUndefined();
    guard.close();
    expect(refusal(guard, undefined)?.status).toBe(401);
  });

  it('accepts a valid token, whatever the case of the scheme', () => {
    const { token, text } = made();
    const guard = guardWith(made().token, token);
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(refusal(guard, `${scheme} ${text}`)).toBeUndefined();
  });

  it.each([
    ['no header', undefined],
    ['another scheme', 'Basic eDp5'],
    ['no scheme', made().text],
    ['a header without end', `Bearer ${'x'.repeat(20_000)}`],
  ])('requires a token if there is %s', (_what, header) => {
    const problem = refusal(guardWith(made().token), header)!;
    expect(problem.status).toBe(401);
    expect(problem.headers['WWW-Authenticate']).toBe('Bearer realm="logstrata"');
    expect(problem.detail).toContain('Authorization: Bearer');
  });

  it('refuses anything that differs from a token in one character', () => {
    const { token, text } = made();
    const guard = guardWith(token);
    for (let i = 0; i < text.length; i++) {
      const other = text[i] === 'a' ? 'b' : 'a';
      const wrong = `Bearer ${text.slice(0, i)}${other}${text.slice(i + 1)}`;
      const problem = refusal(guard, wrong, `client ${i}`)!;
      expect(problem.status).toBe(401);
      expect(problem.headers['WWW-Authenticate']).toContain('error="invalid_token"');
    }
    expect(refusal(guard, `Bearer ${text.slice(0, -1)}`, 'short')?.status).toBe(401);
    expect(refusal(guard, `Bearer ${text}a`, 'long')?.status).toBe(401);
  });

  it('says which of its tokens has expired or was revoked', () => {
    const expired = made({ expiresMs: nowMs });
    const revoked = made({ revokedMs: nowMs, expiresMs: nowMs });
    const early = made({ revokedMs: nowMs, expiresMs: nowMs + 1 });
    const lasting = made({ expiresMs: nowMs + 1 });
    const guard = guardWith(expired.token, revoked.token, early.token, lasting.token);
    expect(refusal(guard, `Bearer ${expired.text}`)?.detail).toBe(
      `the token ${expired.token.id} expired on 2026-01-15`,
    );
    for (const { token, text } of [revoked, early])
      expect(refusal(guard, `Bearer ${text}`)?.detail).toBe(`the token ${token.id} was revoked`);
    expect(refusal(guard, `Bearer ${lasting.text}`)).toBeUndefined();
  });

  it('lets a token for some agents query those agents', () => {
    const { token, text } = made({ agents: ['nginx'] });
    const caller = guardWith(token).identify(`Bearer ${text}`, 'c', nowMs);
    if (caller instanceof Promise) throw new Error('it waits');
    expect(() => caller.assertMay('nginx')).not.toThrow();
    expect(() => caller.assertMay('app')).toThrow('this token may not read the agent "app"');
    expect(() => caller.assertMayAll()).toThrow('only some agents');
  });
});

describe('a client that sends wrong tokens', () => {
  const wrong = `Bearer ${newTokenText().text}`;

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  /** How long the answer to a wrong token is delayed. */
  async function waitOf(guard: ListenerGuard, client = 'c'): Promise<number> {
    let delayMs = 0;
    try {
      guard.identify(wrong, client, nowMs);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ status: 401 });
      ({ delayMs } = error as ProblemError);
    }
    await vi.advanceTimersByTimeAsync(delayMs);
    return delayMs;
  }

  it('is delayed longer each time, up to a limit, and starts again after a while', async () => {
    const guard = guardWith(made().token);
    const waits: number[] = [];
    for (let i = 0; i < failuresAtOnce + 8; i++) waits.push(await waitOf(guard));
    expect(waits).toEqual([0, 0, 0, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    expect(await waitOf(guard, 'another')).toBe(0);
    await vi.advanceTimersByTimeAsync(failuresForgottenMs);
    expect(await waitOf(guard)).toBe(0);
    expect(logged).toEqual([
      'c has sent a wrong token',
      'c has sent 10 wrong tokens',
      'another has sent a wrong token',
      'c has sent a wrong token',
    ]);
  });

  it('is not delayed with a valid token or without a token', async () => {
    const { token, text } = made();
    const guard = guardWith(token);
    for (let i = 0; i < 20; i++) await waitOf(guard);
    expect(refusal(guard, `Bearer ${text}`)).toBeUndefined();
    expect(refusal(guard, undefined)?.status).toBe(401);
  });

  it('has a few answers delayed, and further ones refused at once', async () => {
    const guard = guardWith(made().token);
    const of = (client: string): number => {
      let waiting = 0;
      for (let i = 0; i < failuresAtOnce + slowedAnswersOfClientMax + 3; i++)
        if (refusal(guard, wrong, client) === undefined) waiting++;
      return waiting;
    };
    expect(of('one')).toBe(slowedAnswersOfClientMax);
    expect(refusal(guard, wrong, 'one')?.status).toBe(429);
    let all = slowedAnswersOfClientMax;
    for (let i = 0; i < 2 * slowedAnswersMax; i++) all += of(`client ${i}`);
    expect(all).toBe(slowedAnswersMax);
    await vi.advanceTimersByTimeAsync(failureDelayMsMax);
    expect(refusal(guard, wrong, 'one')).toBeUndefined();
  });

  it('is forgotten if too many others do the same', async () => {
    const guard = guardWith(made().token);
    for (let i = 0; i < 5; i++) await waitOf(guard);
    for (let i = 0; i < failingClientsMax; i++) refusal(guard, wrong, `client ${i}`);
    expect(refusal(guard, wrong)?.status).toBe(401);
  });
});
