/**
 * Work done in steps. A step is something that was made, or a promise that must be settled before the work can go on. Whoever drives
 * the steps decides when the next one is taken. Where nothing has to be waited for, all are taken in one turn of the event loop. Steps are
 * a plain generator, so ending them early (`return`) runs their `finally`s.
 */
export type Steps<Made, Result = void> = Generator<Made | Promise<unknown>, Result>;

/** The value, waited for where it is a promise. */
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

/** Runs steps that make nothing to their end: their result where nothing has to be waited for, else a promise of it. */
export function resultOf<Result>(steps: Steps<never, Result>): Result | Promise<Result> {
  const step = steps.next();
  return step.done === true ? step.value : resultBehind(steps, step.value);
}

async function resultBehind<Result>(steps: Steps<never, Result>, promise: Promise<unknown>): Promise<Result> {
  let step = await stepAfter(steps, promise);
  while (step.done !== true) step = await stepAfter(steps, step.value);
  return step.value;
}

/** Calls `use` with everything that `source` makes. Waits of both are passed on to the driver of these steps. */
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

/** Drives steps. What they make is given at once (`now`) where nothing has to be waited for, else by a promise (`next`). */
export class Driver<Made> implements AsyncIterableIterator<Made, void> {
  readonly #steps: Steps<Made>;
  /** What the step that was taken last has to wait for. */
  #waitsFor: Promise<unknown> | null = null;
  /** Calls of `next` and `return` that have not ended: they take turns. */
  #callsUnderWay = 0;
  #lastCall: Promise<void> = Promise.resolve();

  constructor(steps: Steps<Made>) {
    this.#steps = steps;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What is made next, if it can be had without waiting; null where it can't: then `next` goes on from there. */
  now(): IteratorResult<Made, void> | null {
    if (this.#callsUnderWay > 0 || this.#waitsFor !== null) return null;
    return this.#taken(this.#steps.next());
  }

  next(): Promise<IteratorResult<Made, void>> {
    return this.#inTurn(() => this.#wait());
  }

  /** Ends the work, once what is being waited for is settled. */
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
    // A failure while nobody waits for it is thrown into the next step.
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
