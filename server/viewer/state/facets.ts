import { signal, type ReadonlySignal } from '@preact/signals';
import { askCounts, type ValueCounts } from '../api/counts.js';
import { failureOfError, isAborted, type Failure } from '../api/failure.js';
import type { ServerDoor } from '../api/server-door.js';
import type { Question } from '../query/question.js';

/** The state of a field's value counts. */
export interface FacetState {
  readonly kind: 'loading' | 'ready' | 'failed';
  /** While `loading`, the counts of the previous question. */
  readonly counts?: ValueCounts | undefined;
  readonly failure?: Failure | undefined;
}

/** Number of values that are shown per field. */
const topMax = 10;
/** Number of concurrent requests: a browser opens six connections to a server, and records are more important. */
const atOnceMax = 2;

/** The most frequent values of the fields whose facet is open. */
export class Facets {
  private readonly current = signal<ReadonlyMap<string, FacetState>>(new Map());
  private asking = new AbortController();

  constructor(private readonly door: ServerDoor) {}

  /** By the name of the field. */
  get state(): ReadonlySignal<ReadonlyMap<string, FacetState>> {
    return this.current;
  }

  /** Requests the value counts of these fields, each by its own question. */
  async load(fields: readonly { readonly name: string; readonly question: Question }[]): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal: abortSignal } = this.asking;
    const old = this.current.peek();
    this.current.value = new Map(fields.map(({ name }) => [name, { ...old.get(name), kind: 'loading' }]));
    const waiting = [...fields];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { name, question } = next;
        const state = await this.ask(name, question, abortSignal);
        if (state === undefined) return;
        this.current.value = new Map(this.current.peek()).set(name, state);
      }
    };
    await Promise.all(Array.from({ length: atOnceMax }, work));
  }

  /** Drops all counts; for another agent. */
  clear(): void {
    this.asking.abort();
    this.current.value = new Map();
  }

  /** Requests the counts of a field; undefined where the request was aborted. */
  private async ask(
    field: string,
    question: Question,
    abortSignal: AbortSignal,
  ): Promise<FacetState | undefined> {
    try {
      const { values } = await askCounts(this.door, question, { field, top: topMax }, abortSignal);
      return abortSignal.aborted ? undefined : { kind: 'ready', counts: values };
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return undefined;
      return { kind: 'failed', failure: failureOfError(error) };
    }
  }
}
