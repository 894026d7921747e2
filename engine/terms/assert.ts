/** A violated invariant of our own code. It is a bug to report, never a user's mistake. */
export class AssertionError extends Error {
  constructor(message: string) {
    super(`${message} (this is a bug in logstrata)`);
    this.name = 'AssertionError';
  }
}

/** Throws an `AssertionError` unless `condition` is true. For invariants only; invalid user input gets a `LogstrataError`. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** For the default case of a `switch` over a closed union: a member that is not handled fails to compile. */
export function assertNever(value: never): never {
  throw new AssertionError(`unexpected value ${JSON.stringify(value)}`);
}
