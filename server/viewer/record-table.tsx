import { useRef, useMemo } from 'preact/hooks';
import { Component, type ComponentType, h } from 'preact';
import { useComputed } from '@preact/signals';
import { AgentName } from './agents-menu.js';
import { Button, MarkedText, Menu, usePage, FailureNotice } from './parts.js';
import { conditionList, conditionsOf } from './state/filter.js';
import { agentField, clocksOf, type Field, isSearched, severityOf } from './state/field.js';
import { isSameRecord, shownText, valueText, type Value, type LogRecord } from './state/record.js';
import { timeText, type Zone, shortTimeText, countText, type Needle } from './state/texts.js';
import { searchNeedles } from './state/search.js';
import { type LaidColumn, layColumns, rowId, Scroller } from './scroller.js';
import { widened, searchedField, type View } from './state/view.js';
import {
  type Page,
  emptyWindow,
  recordBy,
  type Edge,
  type EdgeState,
  type WindowState,
} from './state/record-window.js';
import { timeOfRecord } from './state/histogram.js';
import { TimeBar } from './time-bar.js';

/** Maximum number of characters of a value in a row; the record panel shows the whole value. */
const shownCharsMax = 2000;

/** The needles where none is marked. */
const nothing: readonly Needle[] = [];

/** Replaces a line break where a text is shown on one line. */
const lineEnd = ' ↵ ';

interface CellProps {
  readonly field: Field;
  readonly value: Value | undefined;
  readonly zone: Zone;
  /** What was searched for in this field. */
  readonly needles: readonly Needle[];
  /** Whether a text of several lines is shown on several lines. */
  readonly isWrapped: boolean;
  /** Of several agents, the record's own. */
  readonly agent: Value | undefined;
}

/** The value of a field in a cell of the table. */
function CellText({ field, value, zone, needles, isWrapped, agent }: CellProps) {
  if (field === agentField) return <AgentName name={valueText(value)} />;
  if (value === null || value === undefined)
    return field.lackedBy?.includes(valueText(agent)) === true ? null : <span class="null">–</span>;
  if (field.type === 'time' && typeof value === 'number') return <>{timeText(value, zone)}</>;
  const text = shownText(valueText(value));
  const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)} …` : text;
  const laid = isWrapped ? shown : shown.trimEnd().replaceAll(/\r?\n[ \t]*/g, lineEnd);
  return <MarkedText text={laid} needles={needles} />;
}

/** Minimum width in pixels: a narrower column would be hard to grab. */
const widthMin = 48;
/** Pixels by which the menu widens or narrows a column. */
const widthStep = 40;

function ColumnMenu({ column }: { readonly column: LaidColumn }) {
  const { viewer, screen } = usePage();
  const { name } = column.field;
  const widen = (by: number): void => viewer.setWidth(name, Math.max(widthMin, viewer.widthOf(name) + by));
  const remove = (): void => {
    screen.close();
    viewer.toggleColumn(name);
  };
  const choices = [
    ['left', 'Move left', () => viewer.moveColumn(name, -1)],
    ['right', 'Move right', () => viewer.moveColumn(name, 1)],
    ['plus', 'Wider', () => widen(widthStep)],
    ['minus', 'Narrower', () => widen(-widthStep)],
    ['close', 'Remove', remove],
  ] as const;
  return (
    <div class="column-menu">
      {choices.map(([icon, text, act]) => (
        <Button key={icon} icon={icon} onClick={act}>
          {text}
        </Button>
      ))}
    </div>
  );
}

/** The head of a column. It has a menu, can be dragged to another place, and has an edge for changing the width. */
function ColumnHead({ column }: { readonly column: LaidColumn }) {
  const { viewer } = usePage();
  const { name, description, type } = column.field;
  const whole = useRef<HTMLDivElement>(null);
  const beginWidth = (event: PointerEvent): void => {
    const edge = event.currentTarget as HTMLElement;
    const begin = whole.current?.getBoundingClientRect().width ?? 0;
    const fromX = event.clientX;
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent): void =>
      viewer.setWidth(name, Math.round(Math.max(widthMin, begin + moved.clientX - fromX)));
    const end = (): void => {
      edge.removeEventListener('pointermove', move);
      edge.removeEventListener('pointerup', end);
      edge.removeEventListener('pointercancel', end);
    };
    edge.addEventListener('pointermove', move);
    edge.addEventListener('pointerup', end);
    edge.addEventListener('pointercancel', end);
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    const moved = event.dataTransfer?.getData('text/plain') ?? '';
    if (moved !== '' && moved !== name) viewer.placeColumn(moved, name);
  };
  return (
    <div
      ref={whole}
      role="columnheader"
      class={`cell head-cell for-${column.role}`}
      title={description ?? `${name}, ${type}`}
      draggable
      onDragStart={(event) => event.dataTransfer?.setData('text/plain', name)}
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      <Menu name={`column ${name}`} button={name} label={`Column ${name}`}>
        <ColumnMenu column={column} />
      </Menu>
      <span class="width-edge" aria-hidden="true" onPointerDown={beginWidth} draggable={false} />
    </div>
  );
}

/** Renders a component again only when one of its properties has changed, or a signal that it has read. */
function memo<P extends object>(part: ComponentType<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return Object.entries(next).some(([name, value]) => this.props[name as keyof P] !== value);
    }

    override render(props: P) {
      return h(part, props);
    }
  };
}

function EmptyArchive() {
  const { viewer } = usePage();
  const [agent = ''] = viewer.agentNames.value;
  return (
    <>
      <strong class="notice-title">Nothing is stored for {viewer.agentNames.value.join(', ')} yet</strong>
      <p>
        Load what is there: <code>logstrata load {agent} FILE…</code>, or have <code>logstrata serve</code>{' '}
        follow the log that its file names. <code>logstrata check {agent}</code> says what becomes of a line.
      </p>
      <Button look="outlined" onClick={() => viewer.askAgain()}>
        Ask again
      </Button>
    </>
  );
}

function NoMatch() {
  const { viewer } = usePage();
  const { text, range } = viewer.view.value;
  const zone = viewer.preferences.zone.value;
  const records = viewer.recordsExtent.value;
  const conditions = conditionList(viewer.view.value);
  const isBounded = range.kind !== 'all';
  const ways: readonly (readonly [text: string, part: Partial<View>, helps: boolean])[] = [
    ['Wider range', { range: widened(viewer.extent.value) }, isBounded],
    ['All time', { range: { kind: 'all' } }, isBounded],
    ['Without the text', { text: '' }, text !== ''],
    ['Without the last filter', conditionsOf(conditions.slice(0, -1)), conditions.length > 0],
  ];
  return (
    <>
      <strong class="notice-title">Nothing matches</strong>
      {records !== undefined && (
        <p>
          There are records from {shortTimeText(records.sinceMs, zone)} to{' '}
          {shortTimeText(records.untilMs, zone)}.
        </p>
      )}
      <div class="form-line">
        {ways.map(
          ([text, part, helps]) =>
            helps && (
              <Button key={text} look="outlined" onClick={() => viewer.change(part)}>
                {text}
              </Button>
            ),
        )}
      </div>
    </>
  );
}

/** Shown in place of records: why there are none, and what the user can do. */
function NoRecords() {
  const { viewer } = usePage();
  const { failure: general, names, fields } = viewer.agents.value;
  const state = viewer.window.state.value;
  const failure = general ?? state.failure;
  if (failure !== undefined)
    return (
      <div class="no-records">
        <FailureNotice failure={failure} again={() => viewer.askAgain()} />
      </div>
    );
  if (names?.length === 0)
    return (
      <div class="no-records">
        <div class="notice">
          <strong class="notice-title">There is no agent yet</strong>
          <p>
            An agent is a YAML file that says what a log’s lines become. Put one into the agents’ folder, and
            the server finds it at SIGHUP, or at its next start.
          </p>
        </div>
      </div>
    );
  if (state.status === 'loading' || fields === undefined) return <div class="no-records hint">asking…</div>;
  const { filters, groups, text, range, isContext } = viewer.view.value;
  const isAsking = filters.length > 0 || groups.length > 0 || text !== '' || range.kind !== 'all';
  return (
    <div class="no-records">
      <div class="notice">{isAsking && !isContext ? <NoMatch /> : <EmptyArchive />}</div>
    </div>
  );
}

/** What the rendering of rows depends on. The object stays the same while nothing has changed, so rows need not be rendered again. */
interface RowStyle {
  readonly columns: readonly LaidColumn[];
  readonly zone: Zone;
  readonly searchedField: string | undefined;
  readonly needles: readonly Needle[];
  readonly splitField: string | undefined;
  readonly isNewestFirst: boolean;
  readonly isWrapped: boolean;
}

interface RowProps {
  readonly record: LogRecord;
  readonly style: RowStyle;
  readonly isCurrent: boolean;
}

function Row({ record, style, isCurrent }: RowProps) {
  const { cursor, values } = record;
  const { columns, zone, needles, searchedField, splitField, isWrapped } = style;
  const severity = severityOf(splitField === undefined ? undefined : values.get(splitField));
  return (
    <div
      role="row"
      id={rowId(cursor)}
      data-cursor={cursor}
      class={`row is-${severity} ${isCurrent ? 'is-current' : ''}`}
      aria-selected={isCurrent}
    >
      {columns.map(({ field, role }) => (
        <span key={field.name} role="gridcell" class={`cell for-${role}`}>
          <CellText
            field={field}
            value={values.get(field.name)}
            zone={zone}
            needles={isSearched(field, searchedField) ? needles : nothing}
            isWrapped={isWrapped}
            agent={values.get(agentField.name)}
          />
        </span>
      ))}
    </div>
  );
}

interface PageProps {
  readonly page: Page;
  readonly style: RowStyle;
}

/** The rows of a page. They are rendered again only when the page changes, or when the current row enters or leaves it. */
const PageRows = memo(function PageRows({ page, style }: PageProps) {
  const { screen } = usePage();
  // Only the current row of this page, so that a step from row to row does not render other pages.
  const current = useComputed(() => {
    const { value } = screen.current;
    return page.records.find(({ cursor }) => value !== undefined && isSameRecord(cursor, value))?.cursor;
  }).value;
  const records = style.isNewestFirst ? page.records.toReversed() : page.records;
  return (
    <div role="rowgroup" class="page-rows">
      {records.map((record) => (
        <Row key={record.cursor} record={record} style={style} isCurrent={record.cursor === current} />
      ))}
    </div>
  );
});

function EdgeLine({ edge, state }: { readonly edge: Edge; readonly state: EdgeState }) {
  const { viewer } = usePage();
  const isOldest = edge === 'older';
  if (state.kind === 'failed')
    return <FailureNotice failure={state.failure} again={() => void viewer.window.extend(edge)} isSmall />;
  const { isLive } = viewer.view.value;
  const words = {
    more: '…',
    loading: '…',
    end: isOldest ? 'No older records' : isLive ? 'Waiting for records' : 'No newer records',
  }[state.kind];
  return <div class="edge-line">{words}</div>;
}

/** Notices about live records: how many are not shown as the user has scrolled away, and how many were inserted further up. */
function HeldNotice() {
  const { viewer } = usePage();
  const { unseenCount, isMore, behind, kind, failure } = viewer.tail.state.value;
  return (
    <div class="held" role="status">
      {unseenCount > 0 && (
        <Button look="main" onClick={() => void viewer.window.openNewest()}>
          {countText(unseenCount)}
          {isMore ? ' or more' : ''} new
        </Button>
      )}
      {behind !== undefined && (
        <Button look="outlined" onClick={() => viewer.showBehind(behind.lowest)}>
          {countText(behind.count)} came late, further up
        </Button>
      )}
      {kind === 'failed' && failure !== undefined && (
        <span class="held-failure">
          {failure.title}: {failure.detail}. Going on from the last record as soon as it answers.
        </span>
      )}
    </div>
  );
}

function Rows({ state, style }: { readonly state: WindowState; readonly style: RowStyle }) {
  const pages = style.isNewestFirst ? state.pages.toReversed() : state.pages;
  const [above, below]: readonly [Edge, Edge] = style.isNewestFirst ? ['newer', 'older'] : ['older', 'newer'];
  return (
    <>
      <EdgeLine edge={above} state={state[above]} />
      {pages.map((page) => (
        <PageRows key={page.key} page={page} style={style} />
      ))}
      <EdgeLine edge={below} state={state[below]} />
    </>
  );
}

function useRowStyle(): RowStyle {
  const { viewer } = usePage();
  const view = viewer.view.value;
  const fields = viewer.columnFields.value;
  const columns = viewer.columns.value;
  const zone = viewer.preferences.zone.value;
  const splitField = viewer.split.value;
  return useMemo(
    () => ({
      columns: layColumns(columns, fields),
      zone,
      needles: view.isContext ? nothing : searchNeedles(view.text),
      searchedField: searchedField(view, fields),
      splitField,
      isNewestFirst: view.isNewestFirst,
      isWrapped: view.isWrapped,
    }),
    [
      columns,
      fields,
      zone,
      splitField,
      view.text,
      view.textField,
      view.isContext,
      view.isNewestFirst,
      view.isWrapped,
    ],
  );
}

/** The table of records. */
export function RecordTable() {
  const { viewer, screen } = usePage();
  const known = viewer.window.state.value;
  // Until the fields are known there are no columns, and the rows would be scrolled to a wrong position.
  const state = viewer.agents.value.fields === undefined ? emptyWindow : known;
  const view = viewer.view.value;
  const style = useRowStyle();
  const tracks = style.columns.map(({ track }) => track).join(' ');
  const moved = (first: string | undefined, last: string | undefined, isAtNewest: boolean): void => {
    viewer.tail.setSeen(view.isNewestFirst ? first : last, isAtNewest);
    const ends = [first, last].flatMap((cursor) => {
      const record = cursor === undefined ? undefined : recordBy(viewer.window.state.peek(), cursor);
      return record === undefined ? [] : [timeOfRecord(record, clocksOf(viewer.fields.peek()))];
    });
    screen.visible.value =
      ends.length === 0 ? undefined : { sinceMs: Math.min(...ends), untilMs: Math.max(...ends) };
  };
  const click = (event: MouseEvent): void => {
    const row = (event.target as Element).closest<HTMLElement>('[data-cursor]');
    const cursor = row?.dataset['cursor'];
    // A click that ends the selection of text does not open the record: the user may want to copy the text.
    if (cursor === undefined || (getSelection()?.toString() ?? '') !== '') return;
    screen.current.value = cursor;
    viewer.openRecord(cursor);
  };
  const isEmpty = state.pages.length === 0;
  return (
    <main
      class={`table ${view.isWrapped ? 'is-wrapped' : ''} is-${state.status}`}
      aria-busy={state.status === 'loading'}
    >
      <div class="table-body" onClick={click}>
        <Scroller
          window={viewer.window}
          state={state}
          isNewestFirst={view.isNewestFirst}
          isFollowing={viewer.tail.state.value.kind !== 'off'}
          moved={moved}
          style={{ '--tracks': tracks }}
        >
          <div role="rowgroup" class="head-group">
            <div role="row" class="head-row">
              {style.columns.map((column) => (
                <ColumnHead key={column.field.name} column={column} />
              ))}
            </div>
          </div>
          {isEmpty ? (
            <div role="row">
              <div role="gridcell">
                <NoRecords />
              </div>
            </div>
          ) : (
            <Rows state={state} style={style} />
          )}
        </Scroller>
        <HeldNotice />
      </div>
      <TimeBar />
    </main>
  );
}
