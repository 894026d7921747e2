import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { askAgents, askFields } from '../api/agents.js';
import { failureOfError, isAborted, mayPass, type Failure } from '../api/failure.js';
import { askPage } from '../api/record-pages.js';
import { ServerDoor } from '../api/server-door.js';
import { addressOf } from '../query/address.js';
import { severityFieldOf, textFieldOf, timeFieldOf, usualColumns, type Field } from '../query/field.js';
import { withoutWanted } from '../query/filter.js';
import { momentParameter, questionOf, searchedField, type Question } from '../query/question.js';
import { spanOf, type Extent, type Span } from '../query/time-range.js';
import { asksTheSame, type Column, type View } from '../query/view.js';
import { cursorBefore, cursorOfHour, firstCursor } from '../records/cursor.js';
import type { LogRecord } from '../records/record.js';
import { zoneName } from '../records/time-text.js';
import { LiveTail } from '../window/live-tail.js';
import { RecordWindow, type AskForPage } from '../window/record-window.js';
import { recordBy, recordsIn } from '../window/window-state.js';
import type { BrowserStore } from './browser-store.js';
import { askKnownRecords, drawnExtent } from './extent.js';
import { Facets } from './facets.js';
import { Histogram } from './histogram.js';
import { QueryHistory, SavedViews } from './kept-views.js';
import type { Preferences } from './preferences.js';
import { usualWidth } from '../query/column-width.js';
import { sampledShort } from './short-fields.js';
import { TokenStore } from './token-store.js';
import type { ViewStore } from './view-store.js';
import { viewText } from './view-text.js';

/** While records come in live, counts are asked anew so often at most. */
const recountMs = 5000;
/** What comes within so long after the first records is counted with them. */
const gatherMs = 250;
/** A server that was gone is asked again so often. */
const askAgainMs = 3000;

/** What is known of the agents. */
interface AgentState {
  readonly names: readonly string[] | undefined;
  /** The fields of the agent of the view; undefined until they are there. */
  readonly fields: readonly Field[] | undefined;
  readonly failure: Failure | undefined;
}

/** All that the page shows and does, without the page. */
export class Viewer {
  readonly token: TokenStore;
  readonly door: ServerDoor;
  readonly window = new RecordWindow();
  readonly tail: LiveTail;
  readonly histogram: Histogram;
  readonly facets: Facets;
  readonly history: QueryHistory;
  readonly saved: SavedViews;
  readonly agents = signal<AgentState>({ names: undefined, fields: undefined, failure: undefined });
  /** Fields whose values somebody wants to see, or not; others as their values suggest. */
  readonly facetChoice = signal<ReadonlyMap<string, boolean>>(new Map());
  readonly recordsExtent = signal<Extent | undefined>(undefined);
  /** The agent has no record at all. */
  readonly isEmpty = signal(false);
  /** When the question was asked: what its relative times count from. */
  readonly askedMs = signal(Date.now());
  private loading = new AbortController();
  private asked: View | undefined;
  /** The agent whose fields and counts are shown, and whether its fields were told since it was asked for them last. */
  private shownAgent = '';
  private areFieldsTold = false;
  private againTimer: ReturnType<typeof setTimeout> | undefined;
  private recountTimer: ReturnType<typeof setTimeout> | undefined;
  private recountedMs = -Infinity;

  constructor(
    private readonly viewStore: ViewStore,
    readonly preferences: Preferences,
    store: BrowserStore,
    session: BrowserStore,
  ) {
    this.token = new TokenStore(session);
    this.door = new ServerDoor(() => this.token.token.peek());
    this.tail = new LiveTail(this.door, this.window, () => this.recountSoon());
    this.histogram = new Histogram(this.door);
    this.facets = new Facets(this.door);
    this.history = new QueryHistory(store);
    this.saved = new SavedViews(store);
  }

  readonly view = computed(() => this.viewStore.view.value);
  readonly fields = computed(() => this.agents.value.fields ?? []);
  readonly timeField = computed(() => timeFieldOf(this.fields.value));
  readonly columns = computed<readonly Column[]>(() => {
    const known = new Set(this.fields.value.map(({ name }) => name));
    const chosen = this.view.value.columns.filter(({ name }) => known.has(name));
    return chosen.length > 0 ? chosen : usualColumns(this.fields.value).map((name) => ({ name }));
  });
  /** The field by which bars and rows are coloured. */
  readonly split = computed(() => {
    const { split } = this.view.value;
    return split === '' ? undefined : (split ?? severityFieldOf(this.fields.value));
  });
  readonly span = computed<Span>(() => spanOf(this.view.value.range, this.askedMs.value));
  readonly extent = computed(() =>
    drawnExtent(this.span.value, this.recordsExtent.value, this.askedMs.value),
  );
  /** The fields whose most frequent values are shown. */
  readonly openFacets = computed(() => {
    const choice = this.facetChoice.value;
    const short = sampledShort(this.fields.value, this.sample.value);
    return this.fields.value.filter(({ name }) => choice.get(name) ?? short.has(name));
  });
  private readonly sample = signal<readonly LogRecord[]>([]);

  /** Begins: from now on each change of the view is followed. */
  start(): void {
    effect(() => {
      const view = this.view.value;
      untracked(() => this.follow(view));
    });
    effect(() => {
      const isShown = this.preferences.hasFields.value;
      const open = this.openFacets.value;
      void this.askedMs.value;
      if (isShown && open.length > 0) untracked(() => this.loadFacets(open));
    });
    effect(() => {
      void this.split.value;
      void this.preferences.zone.value;
      void this.recordsExtent.value;
      void this.askedMs.value;
      untracked(() => this.loadHistogram());
    });
    effect(() => {
      const { failure, older, newer } = this.window.state.value;
      if (failure !== undefined) this.askAgainSoon(failure);
      if (older.kind === 'failed') this.askAgainSoon(older.failure);
      if (newer.kind === 'failed') this.askAgainSoon(newer.failure);
    });
    if (this.view.peek().agent !== '') void this.loadAgents();
  }

  change(part: Partial<View>): void {
    this.viewStore.change(part);
  }

  /** Follows the newest records, or no longer. A range that has ended is left: nothing comes into it. */
  toggleLive(): void {
    const { isLive, range } = this.view.peek();
    const isOver = range.kind === 'between' && range.untilMs !== undefined;
    if (isLive) this.change({ isLive: false });
    else
      this.change({
        isLive: true,
        isContext: false,
        cursor: undefined,
        ...(isOver ? { range: { kind: 'between', sinceMs: range.sinceMs } } : {}),
      });
  }

  /** Shows records that came late, in their place. */
  showBehind(lowest: string): void {
    this.tail.clearBehind();
    void this.window.openAround(lowest);
  }

  /** Counts anew. */
  recount(): void {
    this.loadHistogram();
  }

  /** Shows the most frequent values of a field, or no longer. */
  openFacet(name: string, isOpen: boolean): void {
    this.facetChoice.value = new Map(this.facetChoice.peek()).set(name, isOpen);
  }

  toggleColumn(name: string): void {
    const columns = this.columns.peek();
    const others = columns.filter((column) => column.name !== name);
    if (others.length < columns.length) return this.putColumns(others);
    // The text, which is long, stays the last one.
    const text = textFieldOf(this.fields.peek());
    const at = columns.at(-1)?.name === text ? columns.length - 1 : columns.length;
    this.putColumns(columns.toSpliced(at, 0, { name }));
  }

  /** Moves a column by one place. */
  moveColumn(name: string, by: -1 | 1): void {
    const columns = this.columns.peek();
    const at = columns.findIndex((column) => column.name === name);
    const other = columns[at + by];
    if (other !== undefined) this.putColumns(columns.with(at + by, columns[at]!).with(at, other));
  }

  /** Puts a column into the place of another one. */
  placeColumn(name: string, place: string): void {
    const columns = this.columns.peek();
    const from = columns.findIndex((column) => column.name === name);
    const to = columns.findIndex((column) => column.name === place);
    if (from < 0 || to < 0) return;
    this.putColumns(columns.toSpliced(from, 1).toSpliced(to, 0, columns[from]!));
  }

  /** The width that a column has, in pixels. */
  widthOf(name: string): number {
    const fields = this.fields.peek();
    const column = this.columns.peek().find((other) => other.name === name);
    const field = fields.find((other) => other.name === name);
    return column?.width ?? (field === undefined ? 0 : usualWidth(field, fields));
  }

  setWidth(name: string, width: number): void {
    this.putColumns(this.columns.peek().map((column) => (column.name === name ? { name, width } : column)));
  }

  private putColumns(columns: readonly Column[]): void {
    // A table without columns would have nothing to put them back by.
    if (columns.length > 0) this.change({ columns });
  }

  openAddress(address: string): void {
    this.viewStore.open(address);
  }

  /** Asks for everything anew: what relative times mean has changed, and records may have come. */
  askAgain(): void {
    this.asked = undefined;
    if (this.agents.peek().names === undefined) void this.loadAgents();
    this.follow(this.view.peek());
  }

  /** What the view asks for; without its filters where a record is shown among its neighbours. */
  question(): Question {
    const view = this.view.peek();
    if (view.isContext) return { agent: view.agent, parameters: [] };
    return questionOf(view, this.fields.peek(), this.span.peek());
  }

  /** Shows the records from a moment on. */
  async goTo(timeMs: number): Promise<void> {
    const time = this.timeField.peek();
    if (time === undefined) return this.window.openFrom(cursorOfHour(timeMs));
    const question = this.question();
    const since: Question = {
      ...question,
      parameters: [...question.parameters, [`${time}__since`, momentParameter(timeMs)]],
    };
    const ask = this.pagesOf(since);
    const { records } = await ask({ limit: 1, after: firstCursor }, this.loading.signal);
    const [first] = records;
    return first === undefined ? this.window.openNewest() : this.window.openFrom(cursorBefore(first.cursor));
  }

  private pagesOf(question: Question): AskForPage {
    return (ask, aborts) => askPage(this.door, question, ask, aborts);
  }

  /** Does what a view asks for that differs from the one before. */
  private follow(view: View): void {
    const before = this.asked;
    if (view.agent === '') return void this.loadAgents();
    if (before === undefined || before.agent !== view.agent) return void this.openAgent(view);
    if (this.agents.peek().fields === undefined) return;
    const isOther = !asksTheSame(before, view) || before.isContext !== view.isContext;
    this.asked = view;
    if (isOther) this.openRecords(view);
    else if (before.isLive !== view.isLive) this.openLive(view);
    else if (view.cursor !== undefined && recordBy(this.window.state.peek(), view.cursor) === undefined)
      void this.window.openAround(view.cursor);
  }

  private async loadAgents(): Promise<void> {
    try {
      const names = await askAgents(this.door);
      const isFirst = this.view.peek().agent === '';
      const [first] = names;
      // Before there is an agent nothing else is asked that could have failed.
      const failure = isFirst ? undefined : this.agents.peek().failure;
      this.agents.value = { ...this.agents.peek(), names, failure };
      if (isFirst && first !== undefined) this.change({ agent: first });
    } catch (error) {
      this.failed(error);
    }
  }

  private async openAgent(view: View): Promise<void> {
    this.loading.abort();
    this.loading = new AbortController();
    const { signal: aborts } = this.loading;
    if (this.shownAgent !== view.agent) {
      batch(() => {
        this.facets.clear();
        this.histogram.clear();
        this.facetChoice.value = new Map();
        this.sample.value = [];
        this.recordsExtent.value = undefined;
        this.isEmpty.value = false;
        this.agents.value = { ...this.agents.peek(), fields: undefined };
      });
    }
    this.shownAgent = view.agent;
    this.areFieldsTold = false;
    this.asked = undefined;
    // What needs no further field to be asked is asked at once, so that the first rows come sooner.
    if (view.range.kind === 'all' || this.agents.peek().fields !== undefined) this.openRecords(view);
    try {
      const fields = await askFields(this.door, view.agent, aborts);
      if (aborts.aborted) return;
      const asked = JSON.stringify(this.question());
      this.areFieldsTold = true;
      this.agents.value = { ...this.agents.peek(), fields, failure: undefined };
      const now = this.view.peek();
      // An agent without text is asked anew without the text.
      if (this.asked !== now || JSON.stringify(this.question()) !== asked) this.openRecords(now);
    } catch (error) {
      if (!aborts.aborted && !isAborted(error)) this.failed(error);
      return;
    }
    await this.loadKnown();
  }

  /** Asks what is known of the agent's records besides the rows. */
  private async loadKnown(): Promise<void> {
    const { signal: aborts } = this.loading;
    try {
      await this.learnRecords(this.view.peek().agent, aborts);
      if (!aborts.aborted) this.agents.value = { ...this.agents.peek(), failure: undefined };
    } catch (error) {
      if (!aborts.aborted && !isAborted(error)) this.failed(error);
    }
  }

  private async learnRecords(agent: string, aborts: AbortSignal): Promise<void> {
    const pages = this.pagesOf({ agent, parameters: [] });
    const { extent, sample } = await askKnownRecords(pages, this.timeField.peek(), aborts);
    if (aborts.aborted) return;
    batch(() => {
      this.recordsExtent.value = extent;
      this.isEmpty.value = extent === undefined;
      if (this.sample.peek().length === 0) this.sample.value = sample;
    });
  }

  private failed(error: unknown): void {
    const failure = failureOfError(error);
    this.agents.value = { ...this.agents.peek(), failure };
    this.askAgainSoon(failure);
  }

  /** Asks again by itself where that alone may help. */
  private askAgainSoon(failure: Failure): void {
    if (!mayPass(failure)) return;
    this.againTimer ??= setTimeout(() => {
      this.againTimer = undefined;
      this.askFailedAgain();
    }, askAgainMs);
  }

  /**
   * Asks for what has failed by now, which may be more than what the wait began for. Rows that are there stay, and stay where they are:
   * everything is asked for anew only where there are none.
   */
  private askFailedAgain(): void {
    const { failure, older, newer } = this.window.state.peek();
    const { failure: general, names } = this.agents.peek();
    if (mayPass(failure) || (mayPass(general) && !this.areFieldsTold)) return this.askAgain();
    if (names === undefined) void this.loadAgents();
    if (mayPass(general)) void this.loadKnown();
    if (older.kind === 'failed' && mayPass(older.failure)) void this.window.extend('older');
    if (newer.kind === 'failed' && mayPass(newer.failure)) void this.window.extend('newer');
  }

  private openRecords(view: View): void {
    this.asked = view;
    this.tail.stop();
    this.askedMs.value = Date.now();
    this.window.reset(this.pagesOf(this.question()));
    if (!view.isContext)
      this.history.note({
        name: viewText(view, searchedField(view, this.fields.peek())),
        address: addressOf({ ...view, cursor: undefined }),
      });
    void this.opened(view).then(() => {
      if (this.asked !== view) return;
      if (this.sample.peek().length === 0) this.sample.value = recordsIn(this.window.state.peek());
      // Without its newest records the tail would not know from where on to follow. It starts once they have been asked for again.
      const isOpen = this.window.state.peek().status === 'ready';
      if (view.isLive && !view.isContext && isOpen) this.tail.start(this.question());
    });
  }

  private opened(view: View): Promise<void> {
    const isAt = view.cursor !== undefined && !view.isLive;
    return isAt ? this.window.openAround(view.cursor) : this.window.openNewest();
  }

  private openLive(view: View): void {
    if (!view.isLive) return this.tail.stop();
    this.openRecords(view);
  }

  private loadFacets(open: readonly Field[]): void {
    const view = this.view.peek();
    const fields = this.fields.peek();
    const asked = open.map(({ name }) => ({
      name,
      question: questionOf(view, fields, this.span.peek(), withoutWanted(view.filters, name)),
    }));
    void this.facets.load(asked);
  }

  private loadHistogram(): void {
    const view = this.view.peek();
    const fields = this.fields.peek();
    if (fields.length === 0 || this.recordsExtent.peek() === undefined) return;
    void this.histogram.load({
      question: questionOf(view, fields, this.span.peek()),
      timeField: this.timeField.peek(),
      extent: this.extent.peek(),
      split: this.split.peek(),
      zone: zoneName(this.preferences.zone.peek()),
    });
  }

  /** Counts anew some time after records have come, up to the newest of them. */
  private recountSoon(): void {
    const waitMs = Math.max(gatherMs, this.recountedMs + recountMs - performance.now());
    this.recountTimer ??= setTimeout(() => {
      this.recountTimer = undefined;
      this.recountedMs = performance.now();
      // The stream says by itself that the server has gone.
      this.learnRecords(this.view.peek().agent, this.loading.signal).catch(() => undefined);
      if (this.preferences.hasFields.peek()) this.loadFacets(this.openFacets.peek());
    }, waitMs);
  }
}
