import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { Button, FailureNotice, Icon, usePage } from './parts.js';
import { typeFacts } from './state/field.js';
import { toggleWanted } from './state/filter.js';
import { countText, numberText, recordsText, shortTimeText } from './state/texts.js';
import { lineFunctions, lineText, readLine } from './state/view.js';
import { plotBars, styleColour } from './bar-plot.js';
import { lineRange, stackBars, type BarLayer, type StackedBars } from './stacked-bars.js';

function Swatch({ layer }: { readonly layer: BarLayer }) {
  return <span class="swatch" aria-hidden="true" style={{ background: styleColour(layer) }} />;
}

function SplitChoice() {
  const { viewer } = usePage();
  const fields = viewer.fields.value.filter(({ type }) => typeFacts[type].isCounted);
  return (
    <label class="split-choice">
      by
      <select
        aria-label="Field that the bars are split by"
        value={viewer.split.value ?? ''}
        onChange={(event) => viewer.change({ split: event.currentTarget.value })}
      >
        <option value="">nothing</option>
        {fields.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function LineChoice() {
  const { viewer } = usePage();
  const line = viewer.line.value;
  return (
    <label class="split-choice">
      line
      <select
        aria-label="Number that is drawn as a line"
        value={line === undefined ? '' : lineText(line)}
        onChange={(event) => viewer.change({ line: readLine(event.currentTarget.value) })}
      >
        <option value="">none</option>
        {viewer.numberFields.value.map(({ name: field }) => (
          <optgroup key={field} label={field}>
            {lineFunctions.map((fn) => (
              <option key={fn} value={lineText({ field, fn })}>
                {fn} {field}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

function Legend({ bars }: { readonly bars: StackedBars }) {
  const { viewer } = usePage();
  const field = viewer.fields.value.find(({ name }) => name === viewer.split.value);
  if (field === undefined) return null;
  const toggle = (value: string): void =>
    viewer.change({ filters: toggleWanted(viewer.view.value.filters, field, value), cursor: undefined });
  return (
    <ul class="legend" aria-label={`Values of ${field.name}`}>
      {bars.layers.map((layer) => (
        <li key={layer.name}>
          {layer.value === undefined ? (
            <span class="legend-rest">
              <Swatch layer={layer} /> {layer.name} {countText(layer.total)}
            </span>
          ) : (
            <Button
              look="quiet"
              title={`Only ${field.name} ${layer.name}, or no longer`}
              onClick={() => toggle(layer.value!)}
            >
              <Swatch layer={layer} /> {layer.name} <span class="count">{countText(layer.total)}</span>
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

interface PlotProps {
  readonly bars: StackedBars;
  readonly stepMs: number;
}

function StepTip({ bars, step, stepMs }: PlotProps & { readonly step: number }) {
  const { viewer } = usePage();
  const zone = viewer.preferences.zone.value;
  const { line } = viewer.counted.value;
  const number = bars.numbers[step] ?? null;
  const fromMs = bars.seconds[step]! * 1000;
  const isRight = step > bars.seconds.length / 2;
  return (
    <div class={`step-tip ${isRight ? 'at-left' : 'at-right'}`}>
      <div>
        {shortTimeText(fromMs, zone)} –{' '}
        {shortTimeText(fromMs + stepMs, zone).slice(stepMs < 86_400_000 ? 11 : 0)}
      </div>
      <b>{recordsText(bars.totals[step] ?? 0)}</b>
      {line !== undefined && (
        <div>
          {line.fn} {line.field} <b>{number === null ? '–' : numberText(number)}</b>
        </div>
      )}
      {bars.layers.length > 1 &&
        bars.layers
          .filter(({ counts }) => counts[step]! > 0)
          .map((layer) => (
            <div key={layer.name}>
              <Swatch layer={layer} /> {layer.name} {countText(layer.counts[step]!)}
            </div>
          ))}
    </div>
  );
}

/** Marks the time range of the visible rows in the histogram. */
function VisibleMark({ bars, stepMs }: PlotProps) {
  const { screen } = usePage();
  const visible = screen.visible.value;
  const first = (bars.seconds[0] ?? 0) * 1000;
  const last = (bars.seconds.at(-1) ?? 0) * 1000 + stepMs;
  if (visible === undefined || last <= first) return null;
  const place = (timeMs: number): number => Math.min(1, Math.max(0, (timeMs - first) / (last - first)));
  const from = place(visible.sinceMs);
  const width = place(visible.untilMs) - from;
  return <div class="visible-mark" style={{ left: `${from * 100}%`, width: `max(3px, ${width * 100}%)` }} />;
}

/** Numbers on the scale of the line, such as `1.2K`. */
const scaleText = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

function Plot({ bars, stepMs }: PlotProps) {
  const { viewer, screen } = usePage();
  const { zone } = viewer.preferences;
  const element = useRef<HTMLDivElement>(null);
  const [step, setStep] = useState<number | undefined>(undefined);
  useEffect(() => {
    if (element.current === null || bars.seconds.length === 0) return undefined;
    const timeOf = (at: number): number => bars.seconds[at]! * 1000;
    const plot: uPlot = plotBars(element.current, bars, zone.value, stepMs / 1000, {
      hover: setStep,
      brush: (from, to) => {
        viewer.change({
          range: { kind: 'between', sinceMs: timeOf(from), untilMs: timeOf(to) + stepMs },
          cursor: undefined,
          isContext: false,
        });
      },
      choose: (at) => void viewer.goTo(timeOf(at)),
    });
    const resized = new ResizeObserver(([entry]) => {
      if (entry !== undefined)
        plot.setSize({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    resized.observe(element.current);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [bars, zone.value, screen.isDark.value]);
  const total = bars.totals.reduce((sum, count) => sum + count, 0);
  const { line } = viewer.counted.value;
  const range = lineRange(bars)?.map((end) => scaleText.format(end));
  const lineWords =
    range === undefined || line === undefined
      ? ''
      : `, with ${line.fn} of ${line.field} from ${range.join(' to ')}`;
  return (
    <div class={`plot ${range === undefined ? '' : 'has-line'}`}>
      <div
        ref={element}
        class="plot-canvas"
        role="img"
        aria-label={`Histogram of ${recordsText(total)} over time${lineWords}`}
      />
      {range !== undefined && (
        <div class="line-scale" aria-hidden="true">
          <span>{range[1]}</span>
          {range[0] !== range[1] && <span>{range[0]}</span>}
        </div>
      )}
      <div class="plot-marks">
        <VisibleMark bars={bars} stepMs={stepMs} />
      </div>
      {step !== undefined && <StepTip bars={bars} stepMs={stepMs} step={step} />}
    </div>
  );
}

/** The histogram: how many records match, and when. It counts all matching records, not only those in the table. */
export function Histogram() {
  const { viewer } = usePage();
  const state = viewer.counted.value;
  const bars = useMemo(() => stackBars(state), [state]);
  const outside = (state.count ?? 0) - bars.totals.reduce((sum, one) => sum + one, 0);
  const { hasHistogram } = viewer.preferences;
  const hasTime = viewer.timeField.value !== undefined;
  // Nothing is counted for an agent without records.
  const [kind, count] = viewer.isEmpty.value ? ['ready', 0] : [state.kind, state.count];
  // A failure that the table reports is not repeated here.
  const isTold = viewer.window.state.value.status === 'failed' || viewer.agents.value.failure !== undefined;
  const failure = isTold ? undefined : state.failure;
  const countWords = kind === 'failed' || isTold ? 'not counted' : '…';
  return (
    <section class={`histogram is-${kind}`} aria-label="Histogram" aria-busy={kind === 'loading'}>
      <div class="histogram-head">
        <Button
          look="quiet"
          aria-expanded={hasHistogram.value}
          title="Histogram (h)"
          onClick={() => (hasHistogram.value = !hasHistogram.value)}
        >
          <Icon name={hasHistogram.value ? 'down' : 'right'} />
          <b class="match-count">{count === undefined ? countWords : recordsText(count)}</b>
        </Button>
        {state.step !== undefined && hasTime && hasHistogram.value && (
          <span class="hint">a bar is {state.step.text}</span>
        )}
        {state.kind === 'ready' && hasTime && hasHistogram.value && outside > 0 && (
          <span class="hint" title="Their time is empty, or outside the time range of the bars.">
            {recordsText(outside)} not in the bars
          </span>
        )}
        <SplitChoice />
        {hasTime && hasHistogram.value && viewer.numberFields.value.length > 0 && <LineChoice />}
        <Legend bars={bars} />
      </div>
      {failure !== undefined && <FailureNotice failure={failure} again={() => viewer.recount()} isSmall />}
      {hasHistogram.value && hasTime && state.failure === undefined && !viewer.isEmpty.value && (
        <Plot bars={bars} stepMs={state.step?.lengthMs ?? 1000} />
      )}
    </section>
  );
}
