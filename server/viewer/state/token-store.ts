import { signal, type ReadonlySignal } from '@preact/signals';
import type { BrowserStore } from './browser-store.js';
import { readToken } from './token.js';

/** The token that is sent with requests. It is kept in the session storage, so only as long as the tab is open. */
export class TokenStore {
  private readonly current;

  constructor(private readonly session: BrowserStore) {
    this.current = signal(readToken(session));
  }

  get token(): ReadonlySignal<string | undefined> {
    return this.current;
  }

  set(token: string | undefined): void {
    const given = token?.trim();
    this.current.value = given === '' ? undefined : given;
    this.session.write('token', this.current.value);
  }
}
