/**
 * Limit on the steps that the templates of one line take together: each character that a function reads or produces is one
 * step. This many take less than a second, and strings of so many characters fit into memory.
 */
export const templateStepsMax = 32 * 1024 * 1024;

/** Steps of a function call, a `printf` verb or a field, in addition to its characters. */
export const stepsOfCall = 64;

/** Thrown when a line's templates exceed their steps. */
export class TemplateOverrun extends Error {}

/** Counts the steps of the templates of one line. */
export class TemplateWork {
  #left = templateStepsMax;

  /** Begins another line. */
  begin(): void {
    this.#left = templateStepsMax;
  }

  /** Takes steps. Throws `TemplateOverrun` where not enough are left. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new TemplateOverrun('the templates of a line take too many steps');
  }
}
