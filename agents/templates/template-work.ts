/**
 * Steps that the templates of one line may take together: each character that a function reads or makes is one. They take less than a
 * second, and strings of so many characters still fit the memory.
 */
export const templateStepsMax = 32 * 1024 * 1024;

/** What a function, a verb of `printf` or a field costs beside its characters. */
export const stepsOfCall = 64;

/** Thrown where a line's templates have taken all their steps. */
export class TemplateOverrun extends Error {}

/** Counts the steps that the templates of one line take. */
export class TemplateWork {
  #left = templateStepsMax;

  /** Begins another line. */
  begin(): void {
    this.#left = templateStepsMax;
  }

  /** Throws `TemplateOverrun` where no such number of steps is left. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new TemplateOverrun('the templates of a line take too many steps');
  }
}
