import { Component, createRef, type ComponentChildren } from 'preact';
import { roleOf, usualWidth, type ColumnRole, type Field } from './state/field.js';
import { agentIndexOf, ownCursor } from './state/record.js';
import type { Column } from './state/view.js';
import type { RecordWindow, Edge, Place, WindowState } from './state/record-window.js';

/** A column as it is rendered. */
export interface LaidColumn {
  readonly field: Field;
  readonly role: ColumnRole;
  /** The column's track of the CSS grid. */
  readonly track: string;
}

/** Lays out the columns. The text column takes the remaining width; without one, the last column does. */
export function layColumns(columns: readonly Column[], fields: readonly Field[]): readonly LaidColumn[] {
  const laid = columns.flatMap(({ name, width }) => {
    const field = fields.find((other) => other.name === name);
    return field === undefined ? [] : [{ field, width, role: roleOf(field, fields) }];
  });
  const wide = laid.findLast(({ role }) => role === 'text') ?? laid.at(-1);
  return laid.map((column) => {
    const { field, role, width } = column;
    const min = `${width ?? usualWidth(field, fields)}px`;
    return { field, role, track: column === wide && width === undefined ? `minmax(${min}, 1fr)` : min };
  });
}

/** The first visible row and its position, which stays fixed when rows are added or removed around it. */
interface Anchor {
  readonly id: string;
  readonly top: number;
}

interface ScrollerProps {
  readonly window: RecordWindow;
  readonly state: WindowState;
  readonly isNewestFirst: boolean;
  /** Whether records are being added at the newest end. The table then follows them if it is scrolled to that end. */
  readonly isFollowing: boolean;
  /** Called with the cursors of the first and last visible row, from the top, and whether the newest end is visible. */
  readonly moved: (first: string | undefined, last: string | undefined, isAtNewest: boolean) => void;
  readonly style: Readonly<Record<string, string>>;
  readonly children: ComponentChildren;
}

/** Rows are requested when the distance to an end is less than this many heights of the visible area. */
const aheadHeights = 2;
/** Tolerance in pixels: browsers round scroll positions. */
const nearPixels = 3;

/**
 * Scrolls through a window that moves over the archive. The browser scrolls the existing rows natively; when an end comes near, rows are
 * added there and removed at the other end, while the first visible row stays in place. So no element is as high as all records would be,
 * which browsers do not support.
 */
export class Scroller extends Component<ScrollerProps> {
  private readonly element = createRef<HTMLDivElement>();
  private placed: Place | undefined;
  private isAtNewest = true;
  private frame = 0;
  private resized: ResizeObserver | undefined;

  override componentDidMount(): void {
    this.resized = new ResizeObserver(() => this.look());
    if (this.element.current !== null) this.resized.observe(this.element.current);
    this.settle(undefined);
  }

  override componentWillUnmount(): void {
    cancelAnimationFrame(this.frame);
    this.resized?.disconnect();
  }

  override getSnapshotBeforeUpdate(): Anchor | undefined {
    const [row] = this.rowsInSight();
    const { current } = this.element;
    return row === undefined || current === null
      ? undefined
      : { id: row.id, top: row.getBoundingClientRect().top - current.getBoundingClientRect().top };
  }

  override componentDidUpdate(before: ScrollerProps, _state: unknown, anchor: Anchor | undefined): void {
    if (
      before.isNewestFirst !== this.props.isNewestFirst &&
      this.placed === this.props.state.place &&
      this.isAtNewest
    )
      this.placed = undefined;
    this.settle(anchor);
  }

  override render({ children, style }: ScrollerProps) {
    return (
      <div
        ref={this.element}
        id="rows"
        class="scroller"
        role="grid"
        aria-label="Records"
        aria-rowcount={-1}
        tabIndex={0}
        style={style}
        onScroll={() => this.look()}
      >
        {children}
      </div>
    );
  }

  /** Restores the scroll position after a rendering. */
  private settle(anchor: Anchor | undefined): void {
    const { current } = this.element;
    const { state, isFollowing } = this.props;
    if (current === null) return;
    if (this.placed !== state.place && state.status === 'ready') {
      this.placed = state.place;
      this.goTo(state.place);
    } else if (isFollowing && this.isAtNewest) {
      this.goToNewest();
    } else if (anchor !== undefined) {
      const row = document.getElementById(anchor.id);
      const headTop = current.getBoundingClientRect().top;
      const by = row === null ? 0 : row.getBoundingClientRect().top - headTop - anchor.top;
      if (Math.abs(by) >= 0.5) current.scrollTop += by;
    }
    this.look();
  }

  private goTo({ cursor, align }: Place): void {
    const { current } = this.element;
    const row = cursor === undefined ? null : document.getElementById(rowId(cursor));
    if (current === null) return;
    if (align === 'newest' || row === null) return this.goToNewest();
    if (align === 'oldest') current.scrollTop = this.props.isNewestFirst ? current.scrollHeight : 0;
    else if (align === 'center') row.scrollIntoView({ block: 'center' });
    else row.scrollIntoView({ block: this.props.isNewestFirst ? 'end' : 'start' });
  }

  private goToNewest(): void {
    const { current } = this.element;
    if (current !== null) current.scrollTop = this.props.isNewestFirst ? 0 : current.scrollHeight;
  }

  /** Determines the visible rows, at most once per frame. */
  private look(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      const { current } = this.element;
      if (current === null) return;
      const above = current.scrollTop;
      const below = current.scrollHeight - current.clientHeight - above;
      const { state, window, isNewestFirst, moved } = this.props;
      const toNewest = isNewestFirst ? above : below;
      const toOldest = isNewestFirst ? below : above;
      this.isAtNewest = toNewest <= nearPixels && state.newer.kind === 'end';
      const ahead = aheadHeights * current.clientHeight;
      const extend = (edge: Edge, distance: number): void => {
        if (distance < ahead && state[edge].kind === 'more') void window.extend(edge);
      };
      extend('older', toOldest);
      extend('newer', toNewest);
      const rows = this.rowsInSight();
      moved(rows[0]?.dataset['cursor'], rows.at(-1)?.dataset['cursor'], this.isAtNewest);
    });
  }

  /** The first and the last visible row, from the top. */
  private rowsInSight(): readonly HTMLElement[] {
    const { current } = this.element;
    if (current === null) return [];
    const { top, bottom } = current.getBoundingClientRect();
    const head = current.querySelector('.head-row')?.getBoundingClientRect().bottom ?? top;
    const groups = [...current.querySelectorAll<HTMLElement>('.page-rows')].filter((group) => {
      const box = group.getBoundingClientRect();
      return isBelow(box, head) && box.top < bottom;
    });
    const first = groups[0] === undefined ? undefined : firstBelow(groups[0], head);
    const last = groups.length === 0 ? undefined : lastAbove(groups.at(-1)!, bottom);
    return first === undefined || last === undefined ? [] : [first, last];
  }
}

/** Whether a box ends below a height, beyond rounding. A page does so exactly if one of its rows does. */
function isBelow({ bottom }: DOMRect, height: number): boolean {
  return bottom > height + 1;
}

/** The first child that ends below a height. */
function firstBelow(group: HTMLElement, height: number): HTMLElement | undefined {
  return childAt(group, (child) => isBelow(child.getBoundingClientRect(), height));
}

/** The last child that begins above a height. */
function lastAbove(group: HTMLElement, height: number): HTMLElement | undefined {
  const next = childAt(group, (child) => child.getBoundingClientRect().top >= height);
  const found = next === undefined ? group.lastElementChild : next.previousElementSibling;
  return found instanceof HTMLElement ? found : undefined;
}

/** The first child for which `holds` is true, by binary search: `holds` must then be true for all later children. */
function childAt(group: HTMLElement, holds: (child: HTMLElement) => boolean): HTMLElement | undefined {
  let low = 0;
  let high = group.children.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(group.children[middle] as HTMLElement)) high = middle;
    else low = middle + 1;
  }
  return group.children[low] as HTMLElement | undefined;
}

/** The id of the DOM element of a row. */
export function rowId(cursor: string): string {
  return `r${agentIndexOf(cursor) ?? ''}${ownCursor(cursor)}`;
}
