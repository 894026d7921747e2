/**
 * Work done in steps. A step is something that was made, or a promise that must be settled before the work can go on. The driver
 * of the steps decides when the next one is taken: where nothing has to be waited for, all of them in one turn of the event loop. It is
 * a plain generator, so that ending it early (`return`) runs its `finally`s.
 */
export type Steps<Made, Result = void> = Generator<Made | Promise<unknown>, Result>;

/** The value of a promise, waited for. Where there may be none, ask before: a step that is not taken costs nothing. */
export function* settled<T>(promise: Promise<T>): Steps<never, T> {
  const outcome: { value?: T } = {};
  yield promise.then((value) => {
    outcome.value = value;
  });
  return outcome.value as T;
}

/** Runs steps that make nothing to their end, whatever happens, and gives their result as a promise. */
export async function completed<Result>(steps: Steps<never, Result>): Promise<Result> {
  let step = steps.next();
  while (step.done !== true) {
    let failure: { readonly error: unknown } | undefined;
    try {
      await step.value;
    } catch (error) {
      failure = { error };
    }
    step = failure === undefined ? steps.next() : steps.throw(failure.error);
  }
  return step.value;
}

/** Calls `use` with everything that `source` makes. Waits of both are passed on to the driver of these steps. */
export function* eachMade<Made, Other>(source: Steps<Made>, use: (made: Made) => Steps<Other>): Steps<Other> {
  try {
    let step = source.next();
    while (step.done !== true) {
      const { value } = step;
      if (!(value instanceof Promise)) {
        yield* use(value);
        step = source.next();
        continue;
      }
      let failure: { readonly error: unknown } | undefined;
      try {
        yield value;
      } catch (error) {
        failure = { error };
      }
      step = failure === undefined ? source.next() : source.throw(failure.error);
    }
  } finally {
    source.return();
  }
}

/** Drives steps: what they make is had at once where nothing has to be waited for, and else through promises. */
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
      let failure: { readonly error: unknown } | undefined;
      try {
        await this.#waitsFor;
      } catch (error) {
        failure = { error };
      }
      this.#waitsFor = null;
      taken = this.#taken(failure === undefined ? this.#steps.next() : this.#steps.throw(failure.error));
    }
    return taken;
  }

  #taken(step: IteratorResult<Made | Promise<unknown>, void>): IteratorResult<Made, void> | null {
    if (step.done === true) return step;
    const { value } = step;
    if (!(value instanceof Promise)) return { done: false, value };
    // It may fail while nobody waits for it. The next step is told.
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
