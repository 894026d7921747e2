import type { BrowserStore } from './browser-store.js';

/** The token that the session storage keeps. */
export function readToken(session: BrowserStore): string | undefined {
  const found = session.read('token');
  return typeof found === 'string' ? found : undefined;
}
