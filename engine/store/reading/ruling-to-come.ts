import { ruling, type Ruling } from '../sealed/filter-probing.js';

/** What filters say of a row group, once threads have answered for all that was asked in the same turn: one promise serves them all. */
export class RulingToCome {
  /** Resolves, never rejects, when this and the others are known. */
  readonly answered: Promise<void>;
  #said: Ruling | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(answered: Promise<void>) {
    this.answered = answered;
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
export async function rulingOf(said: Ruling | Promise<Ruling> | RulingToCome): Promise<Ruling> {
  if (!(said instanceof RulingToCome)) return said;
  await said.answered;
  return said.said;
}
