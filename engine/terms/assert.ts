/** A broken promise of our own code: a bug to report, never a user's mistake. */
export class AssertionError extends Error {
  constructor(message: string) {
    super(`${message} (this is a bug in logstrata)`);
    this.name = 'AssertionError';
  }
}

/** Throws an `AssertionError` unless `condition` holds. For our own bugs only; user input gets a `LogstrataError`. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Closes a `switch` over a closed union: a new member then fails to compile. */
export function assertNever(value: never): never {
  throw new AssertionError(`unexpected value ${JSON.stringify(value)}`);
}
