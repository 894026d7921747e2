import { useMemo, useRef, useState } from 'preact/hooks';
import { stackBars, type StackedBars } from './stacked-bars.js';
import { usePage } from './parts.js';
import type { Extent } from './state/view.js';
import { shortTimeText } from './state/texts.js';

/** Minimum milliseconds between two updates of the table while the bar is dragged. */
const followMs = 120;

/** Converts between times and positions on the bar, which go from 0 at the top to 1. */
class TimeScale {
  constructor(
    readonly extent: Extent,
    readonly isNewestFirst: boolean,
  ) {}

  placeOf(timeMs: number): number {
    const { sinceMs, untilMs } = this.extent;
    const part = Math.min(1, Math.max(0, (timeMs - sinceMs) / (untilMs - sinceMs)));
    return this.isNewestFirst ? 1 - part : part;
  }

  timeAt(place: number): number {
    const { sinceMs, untilMs } = this.extent;
    const part = Math.min(1, Math.max(0, place));
    return Math.round(sinceMs + (this.isNewestFirst ? 1 - part : part) * (untilMs - sinceMs));
  }
}

/** The number of records along the bar: the histogram turned by 90°. */
function Density({ bars, scale, stepMs }: { bars: StackedBars; scale: TimeScale; stepMs: number }) {
  const most = Math.max(1, ...bars.totals);
  const errors = bars.layers.filter(({ severity }) => severity === 'error');
  return (
    <svg class="density" viewBox="0 0 100 1000" preserveAspectRatio="none" aria-hidden="true">
      {bars.seconds.map((seconds, i) => {
        const total = bars.totals[i]!;
        if (total === 0) return null;
        const ends = [scale.placeOf(seconds * 1000), scale.placeOf(seconds * 1000 + stepMs)];
        const top = 1000 * Math.min(...ends);
        const height = Math.max(1.5, 1000 * Math.abs(ends[1]! - ends[0]!) - 1);
        const bad = errors.reduce((sum, { counts }) => sum + counts[i]!, 0);
        // The square root keeps small counts visible beside large ones.
        const width = (count: number): number => 100 * Math.sqrt(count / most);
        return (
          <g key={seconds}>
            <rect x="0" y={top} width={width(total)} height={height} />
            {bad > 0 && <rect class="is-error" x="0" y={top} width={width(bad)} height={height} />}
          </g>
        );
      })}
    </svg>
  );
}

/** The scroll bar of the table. Its length is the time range, as the number of all rows is not known. */
export function TimeBar() {
  const { viewer, screen } = usePage();
  const { isNewestFirst } = viewer.view.value;
  const zone = viewer.preferences.zone.value;
  const state = viewer.counted.value;
  const extent = state.extent ?? viewer.extent.value;
  const scale = useMemo(() => new TimeScale(extent, isNewestFirst), [extent, isNewestFirst]);
  const bars = useMemo(() => stackBars(state), [state]);
  const bar = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | undefined>(undefined);
  const dragging = useRef({ is: false, lastMs: 0 });
  const placeOf = (event: PointerEvent): number => {
    const box = bar.current!.getBoundingClientRect();
    return (event.clientY - box.top) / box.height;
  };
  const go = (event: PointerEvent, isForced: boolean): void => {
    if (!isForced && Date.now() - dragging.current.lastMs < followMs) return;
    dragging.current.lastMs = Date.now();
    void viewer.goTo(scale.timeAt(placeOf(event)));
  };
  const press = (event: PointerEvent): void => {
    event.preventDefault();
    // Until the extent of the records is known, positions on the bar have no times.
    if (viewer.recordsExtent.peek() === undefined) return;
    bar.current?.setPointerCapture(event.pointerId);
    dragging.current.is = true;
    go(event, true);
  };
  const move = (event: PointerEvent): void => {
    setPointed(placeOf(event));
    if (dragging.current.is) go(event, false);
  };
  const release = (event: PointerEvent): void => {
    if (dragging.current.is) go(event, true);
    dragging.current.is = false;
  };
  const visible = screen.visible.value ?? { sinceMs: extent.untilMs, untilMs: extent.untilMs };
  const ends = [scale.placeOf(visible.sinceMs), scale.placeOf(visible.untilMs)];
  const top = Math.min(...ends);
  return (
    <div
      ref={bar}
      class="time-bar"
      role="scrollbar"
      aria-label="Times of the visible records"
      aria-controls="rows"
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={1000}
      aria-valuenow={Math.round(top * 1000)}
      aria-valuetext={shortTimeText(visible.sinceMs, zone)}
      onPointerDown={press}
      onPointerMove={move}
      onPointerUp={release}
      onPointerLeave={() => setPointed(undefined)}
    >
      <Density bars={bars} scale={scale} stepMs={state.step?.lengthMs ?? 1000} />
      <div
        class="thumb"
        hidden={screen.visible.value === undefined}
        style={{ top: `${top * 100}%`, height: `${Math.abs(ends[1]! - ends[0]!) * 100}%` }}
      />
      {pointed !== undefined && (
        <div class="time-tip" style={{ top: `${Math.min(0.98, Math.max(0.02, pointed)) * 100}%` }}>
          {shortTimeText(scale.timeAt(pointed), zone)}
        </div>
      )}
    </div>
  );
}
