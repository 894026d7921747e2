import { ruling, type Ruling } from '../sealed/filter-probing.js';

/** What filters will have said of a row group. One promise may serve many of them: all that were asked about in one turn. */
export class RulingToCome {
  /** Resolves, never rejects, when this and the others are known. */
  readonly answered: Promise<void>;
  #said: Ruling | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(answered: Promise<void>) {
    this.answered = answered;
  }

  /** What `asking` gives. */
  static of(asking: Promise<Ruling>): RulingToCome {
    const toCome: RulingToCome = new RulingToCome(
      asking.then(
        (said) => toCome.answer(said),
        (error: unknown) => toCome.fail(error),
      ),
    );
    return toCome;
  }

  get isKnown(): boolean {
    return this.#said !== null || this.#failure !== null;
  }

  /** Throws what asking has thrown. */
  get said(): Ruling {
    if (this.#failure !== null) throw this.#failure.error;
    return this.#said ?? ruling.mayMatch;
  }

  answer(said: Ruling): void {
    this.#said = said;
  }

  fail(error: unknown): void {
    this.#failure = { error };
  }
}

/** The ruling, waited for where it has to come. */
export async function rulingOf(said: Ruling | RulingToCome): Promise<Ruling> {
  if (!(said instanceof RulingToCome)) return said;
  await said.answered;
  return said.said;
}
