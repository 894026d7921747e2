import { signal, type ReadonlySignal } from '@preact/signals';

/** Prefix of the names in the browser's storage. */
const prefix = 'logstrata.';

/** Stores values in the browser, as JSON. Where the browser stores nothing (private window, full storage), values are just not kept. */
export class BrowserStore {
  constructor(private readonly storage: () => Storage) {}

  /** The value stored under a name; undefined where there is none, or it can't be parsed. */
  read(name: string): unknown {
    try {
      const text = this.storage().getItem(prefix + name);
      return text === null ? undefined : (JSON.parse(text) as unknown);
    } catch {
      return undefined;
    }
  }

  /** Stores a value as JSON under a name; undefined removes it. */
  write(name: string, value: unknown): void {
    try {
      if (value === undefined) this.storage().removeItem(prefix + name);
      else this.storage().setItem(prefix + name, JSON.stringify(value));
    } catch {
      // Storage is full or forbidden: the value is kept only while the page is open.
    }
  }
}

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

/** The token that the session storage keeps. */
export function readToken(session: BrowserStore): string | undefined {
  const found = session.read('token');
  return typeof found === 'string' ? found : undefined;
}
