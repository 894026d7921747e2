import { signal, type ReadonlySignal } from '@preact/signals';
import { askCounts, type ValueCounts } from '../api/counts.js';
import { failureOfError, isAborted, type Failure } from '../api/failure.js';
import type { ServerDoor } from '../api/server-door.js';
import type { Question } from '../query/question.js';

/** What is known of a field's values. */
export interface FacetState {
  readonly kind: 'loading' | 'ready' | 'failed';
  /** Of the question before while loading. */
  readonly counts?: ValueCounts | undefined;
  readonly failure?: Failure | undefined;
}

/** Values of one field that are shown. */
const topMax = 10;
/** Counts that are asked for at once: a browser has six connections to a server, and the records come first. */
const atOnceMax = 2;

/** The most frequent values of fields, of those alone that somebody looks at. */
export class Facets {
  private readonly current = signal<ReadonlyMap<string, FacetState>>(new Map());
  private asking = new AbortController();

  constructor(private readonly door: ServerDoor) {}

  /** By the name of the field. */
  get state(): ReadonlySignal<ReadonlyMap<string, FacetState>> {
    return this.current;
  }

  /** Counts the values of these fields, each by a question of its own, a few at a time. */
  async load(fields: readonly { readonly name: string; readonly question: Question }[]): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: aborts } = this.asking;
    const old = this.current.peek();
    this.current.value = new Map(fields.map(({ name }) => [name, { ...old.get(name), kind: 'loading' }]));
    const waiting = [...fields];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { name, question } = next;
        const state = await this.ask(name, question, aborts);
        if (state === undefined) return;
        this.current.value = new Map(this.current.peek()).set(name, state);
      }
    };
    await Promise.all(Array.from({ length: atOnceMax }, work));
  }

  /** Forgets all counts: for another agent. */
  clear(): void {
    this.asking.abort();
    this.current.value = new Map();
  }

  /** Undefined once nobody wants it any more. */
  private async ask(field: string, question: Question, aborts: AbortSignal): Promise<FacetState | undefined> {
    try {
      const { values } = await askCounts(this.door, question, { field, top: topMax }, aborts);
      return aborts.aborted ? undefined : { kind: 'ready', counts: values };
    } catch (error) {
      if (aborts.aborted || isAborted(error)) return undefined;
      return { kind: 'failed', failure: failureOfError(error) };
    }
  }
}
