import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { askAgents, askFields, ServerClient } from './requests.js';
import { failureOfError, isAborted, mayPass, type Failure } from './failure.js';
import type { FirstRequests } from './first-requests.js';
import { askPage } from './record-stream.js';
import {
  addressOf,
  agentNames,
  plainView,
  questionOf,
  searchedField,
  type Question,
  spanOf,
  type Extent,
  type Span,
  asksTheSame,
  type Column,
  type View,
  viewText,
} from './view.js';
import {
  agentField,
  clocksOf,
  severityFieldOf,
  textFieldOf,
  timeFieldOf,
  usualColumns,
  type Field,
  usualWidth,
  sampledShort,
  typeFacts,
} from './field.js';
import { withoutWanted } from './filter.js';
import {
  agentIndexOf,
  cursorBefore,
  cursorOfHour,
  firstCursor,
  isOfNoPage,
  ownCursor,
  type LogRecord,
} from './record.js';
import { zoneName } from './texts.js';
import { LiveTail } from './live-tail.js';
import { RecordWindow, type AskForPage, recordBy, recordsIn } from './record-window.js';
import { type BrowserStore, TokenStore } from './browser-store.js';
import {
  askKnownRecords,
  drawnExtent,
  Facets,
  Histogram,
  type HistogramState,
  timeOfRecord,
} from './histogram.js';
import { ViewList, type Preferences, type ViewStore } from './kept-views.js';

/** Minimum milliseconds between two counts while records come in live. */
const recountMs = 5000;
/** Milliseconds to wait after new records before counting, so that records shortly after are included. */
const gatherMs = 250;
/** Milliseconds before a failed request is repeated. */
const askAgainMs = 3000;

/** Maximum number of queries in the history, and of views that the user can save. */
const historyMax = 50;
const savedMax = 200;

/** What is known of the agents. */
interface AgentState {
  readonly names: readonly string[] | undefined;
  /** The fields of the view's agents; undefined until they were received. */
  readonly fields: readonly Field[] | undefined;
  readonly failure: Failure | undefined;
}

/** What the page gives the viewer to begin with. */
export interface ViewerStart {
  /** Requests that were sent before the viewer existed. */
  readonly first?: FirstRequests;
  /** Resolves when the browser has drawn what has changed so far. By default it is not waited for. */
  readonly drawn?: () => Promise<void>;
}

/** The state and the actions of the page, without its rendering. */
export class Viewer {
  readonly token: TokenStore;
  readonly server: ServerClient;
  readonly window = new RecordWindow();
  readonly tail: LiveTail;
  readonly histogram: Histogram;
  readonly facets: Facets;
  /** The views that were queried, each address once. */
  readonly history: ViewList;
  /** Views that the user has saved under names. */
  readonly saved: ViewList;
  readonly agents = signal<AgentState>({ names: undefined, fields: undefined, failure: undefined });
  /** Fields whose facet the user has opened (true) or closed (false). For other fields the sampled values decide. */
  readonly facetChoice = signal<ReadonlyMap<string, boolean>>(new Map());
  readonly recordsExtent = signal<Extent | undefined>(undefined);
  /** Whether the agent has no records at all. */
  readonly isEmpty = signal(false);
  /** The time of the question, in milliseconds since the epoch. Relative ranges count from it. */
  readonly askedMs = signal(Date.now());
  private loading = new AbortController();
  /** The view whose records were requested last; undefined where they are to be requested anew. */
  private requestedView: View | undefined;
  /** The agent whose fields and counts are shown, and whether its fields have been received since they were last requested. */
  private shownAgent = '';
  private areFieldsTold = false;
  private againTimer: ReturnType<typeof setTimeout> | undefined;
  private recountTimer: ReturnType<typeof setTimeout> | undefined;
  private recountedMs = -Infinity;
  private readonly drawn: () => Promise<void>;

  constructor(
    private readonly viewStore: ViewStore,
    readonly preferences: Preferences,
    store: BrowserStore,
    session: BrowserStore,
    { first, drawn = () => Promise.resolve() }: ViewerStart = {},
  ) {
    this.drawn = drawn;
    this.token = new TokenStore(session);
    this.server = new ServerClient(() => this.token.token.peek(), first);
    this.tail = new LiveTail(this.server, this.window, () => this.recountSoon());
    this.histogram = new Histogram(this.server);
    this.facets = new Facets(this.server);
    this.history = new ViewList(store, 'history', 'address', historyMax);
    this.saved = new ViewList(store, 'views', 'name', savedMax);
  }

  readonly view = computed(() => this.viewStore.view.value);
  readonly fields = computed(() => this.agents.value.fields ?? []);
  readonly timeField = computed(() => timeFieldOf(this.fields.value));
  readonly agentNames = computed(() => agentNames(this.view.value.agent));
  /** The fields of the records in the table. The neighbours of a record are of its own agent. */
  readonly columnFields = computed(() => {
    const fields = this.fields.value;
    if (this.agentNames.value.length < 2) return fields;
    const agent = this.agentOfRecord();
    if (!this.view.value.isContext) return [agentField, ...fields];
    return fields.filter(({ lackedBy }) => lackedBy?.includes(agent) !== true);
  });
  readonly columns = computed<readonly Column[]>(() => {
    const known = new Set(this.columnFields.value.map(({ name }) => name));
    const chosen = this.view.value.columns.filter(({ name }) => known.has(name));
    if (chosen.length > 0) return chosen;
    const names = [...usualColumns(this.columnFields.value.filter((field) => field !== agentField))];
    if (known.has(agentField.name)) names.splice(clocksOf(this.fields.value).length, 0, agentField.name);
    return names.map((name) => ({ name }));
  });
  /** The field by which bars and rows are coloured. */
  readonly split = computed(() => {
    const { split } = this.view.value;
    return split === '' ? undefined : (split ?? severityFieldOf(this.fields.value));
  });
  /** The number that is drawn as a line, if a field has numbers of that name. */
  readonly line = computed(() => {
    const { line } = this.view.value;
    return this.numberFields.value.some(({ name }) => name === line?.field) ? line : undefined;
  });
  readonly numberFields = computed(() =>
    this.fields.value.filter(({ type }) => typeFacts[type].role === 'number'),
  );
  /** The histogram; without the counts of an earlier question, which it has until it is loaded, where this one's records can't be had. */
  readonly counted = computed((): HistogramState => {
    const { value: state } = this.histogram.state;
    const isOld = state.kind === 'loading' && this.window.state.value.status === 'failed';
    return isOld ? { kind: 'loading', buckets: [] } : state;
  });
  readonly span = computed<Span>(() => spanOf(this.view.value.range, this.askedMs.value));
  readonly extent = computed(() => {
    // A live tail continues for long after its question.
    const nowMs = this.view.value.isLive ? Date.now() : this.askedMs.value;
    return drawnExtent(this.span.value, this.recordsExtent.value, nowMs);
  });
  /** The names of the fields that are open in the fields pane. */
  readonly openFields = computed<ReadonlySet<string>>(() => {
    const choice = this.facetChoice.value;
    const short = sampledShort(this.fields.value, this.sample.value);
    const open = this.fields.value.filter(({ name }) => choice.get(name) ?? short.has(name));
    return new Set(open.map(({ name }) => name));
  });
  /** The fields whose most frequent values are shown. */
  readonly openFacets = computed(() => {
    const open = this.openFields.value;
    return this.fields.value.filter(({ name, type }) => open.has(name) && typeFacts[type].isCounted);
  });
  private readonly sample = signal<readonly LogRecord[]>([]);

  /** Starts: from now on changes of the view take effect. */
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
      void this.line.value;
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
  }

  /** Changes the view (`ViewStore.change`). */
  change(part: Partial<View>): void {
    this.viewStore.change(part);
  }

  /** Turns the live tail on or off. A range that has an end is extended to now, as no new record can fall into it. */
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

  /** Shows records that were inserted before the others, at their position. */
  showBehind(lowest: string): void {
    this.tail.clearBehind();
    void this.window.openAround(lowest);
  }

  /** Updates the histogram. */
  recount(): void {
    this.loadHistogram();
  }

  /** Opens or closes the facet of a field. */
  openFacet(name: string, isOpen: boolean): void {
    this.facetChoice.value = new Map(this.facetChoice.peek()).set(name, isOpen);
  }

  /** Shows a field as a column, or removes its column. */
  toggleColumn(name: string): void {
    const columns = this.columns.peek();
    const others = columns.filter((column) => column.name !== name);
    if (others.length < columns.length) return this.putColumns(others);
    // New columns are inserted before the text column, which is long and should stay the last.
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

  /** Moves a column to the place of another one. */
  placeColumn(name: string, place: string): void {
    const columns = this.columns.peek();
    const from = columns.findIndex((column) => column.name === name);
    const to = columns.findIndex((column) => column.name === place);
    if (from < 0 || to < 0) return;
    this.putColumns(columns.toSpliced(from, 1).toSpliced(to, 0, columns[from]!));
  }

  /** The width of a column in pixels. */
  widthOf(name: string): number {
    const fields = this.columnFields.peek();
    const column = this.columns.peek().find((other) => other.name === name);
    const field = fields.find((other) => other.name === name);
    return column?.width ?? (field === undefined ? 0 : usualWidth(field, fields));
  }

  /** Sets the width of a column in pixels. */
  setWidth(name: string, width: number): void {
    this.putColumns(this.columns.peek().map((column) => (column.name === name ? { name, width } : column)));
  }

  private putColumns(columns: readonly Column[]): void {
    // At least one column stays: from an empty table the user could not get columns back.
    if (columns.length > 0) this.change({ columns });
  }

  /** Opens a stored address. */
  openAddress(address: string): void {
    this.viewStore.open(address);
  }

  /** Repeats all requests. Relative ranges are evaluated again. */
  askAgain(): void {
    this.requestedView = undefined;
    if (this.agents.peek().names === undefined) void this.loadAgents();
    this.follow(this.view.peek());
  }

  /** Opens a record of the table. */
  openRecord(cursor: string): void {
    const { isContext, cursor: open = '' } = this.view.peek();
    const agent = isContext ? agentIndexOf(open) : undefined;
    this.change({ cursor: agent === undefined ? cursor : `${agent + 1}.${cursor}` });
  }

  /** The agent of the open record. */
  agentOfRecord(): string {
    const { agent, cursor = '' } = this.view.value;
    return agentNames(agent)[agentIndexOf(cursor) ?? 0] ?? agent;
  }

  /** The question of the view, for records from a time on; without filters where a record is shown among its neighbours. */
  question(sinceMs = -Infinity): Question {
    const view = this.view.peek();
    const agent = this.agentOfRecord();
    const span = view.isContext ? {} : this.span.peek();
    const from = Math.max(sinceMs, span.sinceMs ?? -Infinity);
    const asked = view.isContext ? { ...plainView, agent } : view;
    const fields = view.isContext ? this.columnFields.peek() : this.fields.peek();
    return questionOf(asked, fields, { ...span, ...(from === -Infinity ? {} : { sinceMs: from }) });
  }

  /** Scrolls to the first record at or after a time. */
  async goTo(timeMs: number): Promise<void> {
    if (this.timeField.peek() === undefined) {
      const like = recordsIn(this.window.state.peek())[0]?.cursor ?? firstCursor;
      return this.window.openFrom(cursorOfHour(timeMs, like));
    }
    const ask = this.pagesOf(this.question(timeMs));
    try {
      const { records } = await ask({ limit: 1, after: firstCursor }, this.loading.signal);
      const [first] = records;
      if (first !== undefined) return await this.window.openFrom(cursorBefore(first.cursor));
    } catch (error) {
      // Another failure is shown by the next request, which fails too.
      if (isAborted(error)) return;
    }
    return this.window.openNewest();
  }

  private pagesOf(question: Question): AskForPage {
    return (ask, abortSignal) => askPage(this.server, question, ask, abortSignal);
  }

  /** Requests what has changed in the view since the previous one. */
  private follow(view: View): void {
    const before = this.requestedView;
    if (view.agent === '') return void this.loadAgents();
    if (before === undefined || before.agent !== view.agent) return void this.openAgent(view);
    if (this.agents.peek().fields === undefined) return;
    const isOther = !asksTheSame(before, view) || before.isContext !== view.isContext;
    this.requestedView = view;
    if (isOther) void this.openRecords(view);
    else if (before.isLive !== view.isLive) this.openLive(view);
    else if (view.cursor !== undefined && recordBy(this.window.state.peek(), view.cursor) === undefined)
      if (view.isContext || !isOfNoPage(view.cursor)) void this.openAround(view, view.cursor);
  }

  /** Shows a record among the matching ones, or among its neighbours of its own agent. */
  private openAround({ isContext }: View, cursor: string): Promise<void> {
    if (isContext) return this.window.openAround(ownCursor(cursor));
    if (!isOfNoPage(cursor)) return this.window.openAround(cursor);
    // It was opened among its neighbours, so its place among the records of other agents has to be found by its time.
    const record = recordBy(this.window.state.peek(), cursor);
    return record === undefined
      ? this.window.openNewest()
      : this.goTo(timeOfRecord(record, clocksOf(this.fields.peek())));
  }

  private async loadAgents(): Promise<void> {
    try {
      const names = await askAgents(this.server);
      const isFirst = this.view.peek().agent === '';
      const [first] = names;
      // Before an agent is known, no other request can have failed.
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
    const { signal: abortSignal } = this.loading;
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
    this.requestedView = undefined;
    // Requests that do not depend on the fields are sent at once, so that the first rows appear sooner.
    let opened = Promise.resolve();
    if (view.range.kind === 'all' || this.agents.peek().fields !== undefined) opened = this.openRecords(view);
    try {
      const fields = await askFields(this.server, view.agent, abortSignal);
      if (abortSignal.aborted) return;
      const questionBefore = JSON.stringify(this.question());
      this.areFieldsTold = true;
      this.agents.value = { ...this.agents.peek(), fields, failure: undefined };
      const now = this.view.peek();
      // The question may have changed now that the fields are known: without string fields there is no search for the text.
      if (this.requestedView !== now || JSON.stringify(this.question()) !== questionBefore)
        opened = this.openRecords(now);
    } catch (error) {
      if (abortSignal.aborted || isAborted(error)) return;
      this.failed(error);
      // The user may choose another agent.
      if (this.agents.peek().names === undefined) void this.loadAgents();
      return;
    }
    // Everything else is requested after the first rows were drawn.
    await opened;
    if (abortSignal.aborted) return;
    if (this.agents.peek().names === undefined) void this.loadAgents();
    await this.loadKnown();
  }

  /** Requests the facts about the agent's records (`askKnownRecords`). */
  private async loadKnown(): Promise<void> {
    const { signal: abortSignal } = this.loading;
    try {
      await this.learnRecords(this.view.peek().agent, abortSignal);
      if (!abortSignal.aborted) this.agents.value = { ...this.agents.peek(), failure: undefined };
    } catch (error) {
      if (!abortSignal.aborted && !isAborted(error)) this.failed(error);
    }
  }

  private async learnRecords(agent: string, abortSignal: AbortSignal): Promise<void> {
    const pages = this.pagesOf({ agent, parameters: [] });
    const { extent, sample } = await askKnownRecords(pages, clocksOf(this.fields.peek()), abortSignal);
    if (abortSignal.aborted) return;
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

  /** Repeats a request automatically where that alone may help. */
  private askAgainSoon(failure: Failure): void {
    if (!mayPass(failure)) return;
    this.againTimer ??= setTimeout(() => {
      this.againTimer = undefined;
      this.askFailedAgain();
    }, askAgainMs);
  }

  /**
   * Repeats the requests that have failed by now, which may be more than the one that started the timer. Shown rows stay where they are;
   * everything is requested again only where there are none.
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

  /** Requests the records of a view. Resolves when they are drawn, or the request has failed. */
  private async openRecords(view: View): Promise<void> {
    this.requestedView = view;
    this.tail.stop();
    // Each question has a time of its own, as the counts are requested when it changes.
    this.askedMs.value = Math.max(Date.now(), this.askedMs.peek() + 1);
    this.window.reset(this.pagesOf(this.question()));
    const name = viewText(view, searchedField(view, this.fields.peek()));
    const address = addressOf({ ...view, cursor: undefined });
    const [newest] = this.history.views.peek();
    if (!view.isContext && newest?.address !== address) this.history.put({ name, address });
    await this.opened(view);
    await this.drawn();
    if (this.requestedView !== view) return;
    if (this.sample.peek().length === 0) this.sample.value = recordsIn(this.window.state.peek());
    // Without the newest records the tail would not know where to begin. It starts after they have been requested again.
    const isOpen = this.window.state.peek().status === 'ready';
    if (view.isLive && !view.isContext && isOpen) this.tail.start(this.question());
  }

  private opened(view: View): Promise<void> {
    const isAt = view.cursor !== undefined && !view.isLive;
    return isAt ? this.openAround(view, view.cursor) : this.window.openNewest();
  }

  private openLive(view: View): void {
    if (!view.isLive) return this.tail.stop();
    void this.openRecords(view);
  }

  private loadFacets(open: readonly Field[]): void {
    const view = this.view.peek();
    const fields = this.fields.peek();
    const questions = open.map(({ name }) => ({
      name,
      question: questionOf(view, fields, this.span.peek(), withoutWanted(view.filters, name)),
    }));
    void this.facets.load(questions);
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
      line: this.line.peek(),
      zone: zoneName(this.preferences.zone.peek()),
    });
  }

  /** Updates the counts, up to the newest record, some time after records have come. */
  private recountSoon(): void {
    const waitMs = Math.max(gatherMs, this.recountedMs + recountMs - performance.now());
    this.recountTimer ??= setTimeout(() => {
      this.recountTimer = undefined;
      this.recountedMs = performance.now();
      // An error is ignored here: the stream itself reports that the server has gone.
      this.learnRecords(this.view.peek().agent, this.loading.signal).catch(() => undefined);
      if (this.preferences.hasFields.peek()) this.loadFacets(this.openFacets.peek());
    }, waitMs);
  }
}
