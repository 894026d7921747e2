/**
 * Work done in steps: a generator that yields either something it made, or a promise that must settle before the next step. The caller
 * that drives the generator decides when to take the next step. Where no step has to wait, all run in one turn of the event loop, without
 * the cost of an async generator. Ending the generator early (`return`) runs its `finally` blocks.
 */
export type Steps<Made, Result = void> = Generator<Made | Promise<unknown>, Result>;

/** Yields `value` if it is a promise, and returns the settled value. */
export function* settled<T>(value: T | Promise<T>): Steps<never, T> {
  if (!(value instanceof Promise)) return value;
  const outcome: { value?: T } = {};
  yield value.then((settledValue) => {
    outcome.value = settledValue;
  });
  return outcome.value as T;
}

/** Takes the next step once `promise` is settled. A failure of the promise is thrown into the steps. */
async function stepAfter<Made, Result>(
  steps: Steps<Made, Result>,
  promise: Promise<unknown>,
): Promise<IteratorResult<Made | Promise<unknown>, Result>> {
  try {
    await promise;
  } catch (error) {
    return steps.throw(error);
  }
  return steps.next();
}

/** Runs steps that make nothing to their end. Returns their result, or a promise of it if a step has to wait. */
export function resultOf<Result>(steps: Steps<never, Result>): Result | Promise<Result> {
  const step = steps.next();
  return step.done === true ? step.value : resultBehind(steps, step.value);
}

async function resultBehind<Result>(steps: Steps<never, Result>, promise: Promise<unknown>): Promise<Result> {
  let step = await stepAfter(steps, promise);
  while (step.done !== true) step = await stepAfter(steps, step.value);
  return step.value;
}

/** Calls `use` with each thing that `source` makes. Promises of both are yielded to the caller. */
export function* eachMade<Made, Other>(source: Steps<Made>, use: (made: Made) => Steps<Other>): Steps<Other> {
  try {
    let step = source.next();
    while (step.done !== true) {
      const { value } = step;
      if (value instanceof Promise) {
        try {
          yield value;
        } catch (error) {
          step = source.throw(error);
          continue;
        }
      } else {
        yield* use(value);
      }
      step = source.next();
    }
  } finally {
    source.return();
  }
}

/** Drives steps as an async iterator. `now` also gives the next thing synchronously where no step has to wait. */
export class Driver<Made> implements AsyncIterableIterator<Made, void> {
  readonly #steps: Steps<Made>;
  /** The promise that has to settle before the next step; null where there is none. */
  #waitsFor: Promise<unknown> | null = null;
  /** Number of unfinished calls of `next` and `return`. They run one after another. */
  #callsUnderWay = 0;
  #lastCall: Promise<void> = Promise.resolve();

  constructor(steps: Steps<Made>) {
    this.#steps = steps;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next thing made, if it is available without waiting; else null, and `next` continues from there. */
  now(): IteratorResult<Made, void> | null {
    if (this.#callsUnderWay > 0 || this.#waitsFor !== null) return null;
    return this.#taken(this.#steps.next());
  }

  next(): Promise<IteratorResult<Made, void>> {
    return this.#inTurn(() => this.#wait());
  }

  /** Ends the work once the pending promise has settled. */
  return(): Promise<IteratorResult<Made, void>> {
    return this.#inTurn(async () => {
      await this.#waitsFor?.catch(() => undefined);
      this.#waitsFor = null;
      this.#steps.return();
      return { done: true, value: undefined };
    });
  }

  async #wait(): Promise<IteratorResult<Made, void>> {
    let taken = this.#waitsFor === null ? this.#taken(this.#steps.next()) : null;
    while (taken === null) {
      const promise = this.#waitsFor!;
      this.#waitsFor = null;
      taken = this.#taken(await stepAfter(this.#steps, promise));
    }
    return taken;
  }

  #taken(step: IteratorResult<Made | Promise<unknown>, void>): IteratorResult<Made, void> | null {
    if (step.done === true) return step;
    const { value } = step;
    if (!(value instanceof Promise)) return { done: false, value };
    // Mark the promise as handled: it may fail before the caller asks for the next step, which then throws the failure.
    value.catch(() => undefined);
    this.#waitsFor = value;
    return null;
  }

  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#callsUnderWay === 0 ? call() : this.#lastCall.then(call);
    this.#callsUnderWay++;
    const leave = (): void => {
      this.#callsUnderWay--;
    };
    this.#lastCall = result.then(leave, leave);
    return result;
  }
}
