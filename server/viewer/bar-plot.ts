import uPlot from 'uplot';
import { type BarLayer, lineRange, type StackedBars } from './stacked-bars.js';
import { shortCountText, tickTexts, type Zone } from './state/texts.js';

/** Number of colours for values without a severity. */
const hues = 6;
/** Percent by which each further shade is lighter, and the minimum percentage of colour. */
const shadeStep = 22;
const shadeMin = 34;

type Coloured = Pick<BarLayer, 'severity' | 'hue' | 'shade'>;

function nameOf({ severity, hue }: Coloured): string {
  if (severity !== 'other') return `--level-${severity}`;
  return hue < 0 ? '--bar-rest' : `--hue-${hue % hues}`;
}

function percentOf({ shade }: Coloured): number {
  return Math.max(shadeMin, 100 - shade * shadeStep);
}

/** The colour of a layer as CSS. */
export function styleColour(layer: Coloured): string {
  return `color-mix(in srgb, var(${nameOf(layer)}) ${percentOf(layer)}%, var(--ground))`;
}

/** The current value of a colour variable of the style sheet, such as `#12161b`. */
function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The channels of a hex colour. Minified style sheets have the short form `#fff` as well. */
function channelsOf(hex: string): readonly number[] {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

/** The colour of a layer for a canvas, which can't use CSS variables. */
function canvasColour(layer: Coloured): string {
  const part = percentOf(layer) / 100;
  const ground = channelsOf(colourOf('--ground'));
  const mixed = channelsOf(colourOf(nameOf(layer))).map((channel, i) =>
    Math.round(channel * part + ground[i]! * (1 - part)),
  );
  return `rgb(${mixed.join(' ')})`;
}

/** The events of a plot. Steps are indexes of bars. */
export interface PlotEvents {
  /** The pointer is over a step; over none where undefined. */
  hover(step: number | undefined): void;
  /** A range of steps was selected; both are included. */
  brush(from: number, to: number): void;
  /** A step was clicked. */
  choose(step: number): void;
}

/** Minimum width of a selection in pixels; a narrower one is a click with a small movement. */
const brushPixelsMin = 5;

function seriesOf(bars: StackedBars): uPlot.Series[] {
  const paths = uPlot.paths.bars!({ size: [0.92, Infinity] });
  // The highest layer is drawn first, and the lower ones over it.
  const layers = [...bars.layers].reverse().map((layer) => {
    const fill = canvasColour(layer);
    return { fill, stroke: fill, width: 0, paths, points: { show: false } };
  });
  const line = (stroke: string, width: number): uPlot.Series => ({
    scale: 'numbers',
    stroke,
    width,
    points: { show: true, size: width, fill: stroke, width: 0 },
  });
  // An edge in the colour of the ground keeps the line visible over the bars.
  return [...layers, line(colourOf('--ground'), 5), line(colourOf('--line-of-numbers'), 2)];
}

/** The values of the series: at the middle of each step, the tops of its layers, and its number. */
function dataOf({ seconds, layers, numbers }: StackedBars, stepSeconds: number): uPlot.AlignedData {
  const line = numbers.map((number) => (number === null ? null : Number(number)));
  const tops = [...layers].reverse().map((layer) => [...layer.tops]);
  return [seconds.map((second) => second + stepSeconds / 2), ...tops, line, line];
}

function axes(zone: Zone): uPlot.Axis[] {
  const stroke = colourOf('--muted');
  const grid = { stroke: colourOf('--line'), width: 1 };
  const font = '11px system-ui, sans-serif';
  return [
    {
      stroke,
      font,
      grid: { show: false },
      ticks: { ...grid, size: 4 },
      size: 22,
      space: 76,
      // Fractions of a second get no label.
      values: (_plot, values) => {
        const texts = tickTexts(
          values.map((seconds) => seconds * 1000),
          zone,
        );
        return values.map((seconds, i) => (Number.isInteger(seconds) ? texts[i]! : ''));
      },
    },
    {
      stroke,
      font,
      grid,
      ticks: { show: false },
      size: 44,
      space: 26,
      values: (_plot, values) =>
        values.map((value) => (Number.isInteger(value) ? shortCountText(value) : '')),
    },
  ];
}

const nothingSelected = { left: 0, top: 0, width: 0, height: 0 };

/** Lets a finger select a range: uPlot itself only handles the mouse. `brush` gets both ends in pixels of the plot. */
function brushByTouch(plot: uPlot, brush: (left: number, right: number) => void): void {
  const { over } = plot;
  let begun: number | undefined;
  const leftOf = ({ clientX }: PointerEvent): number => {
    const { left, width } = over.getBoundingClientRect();
    return Math.min(width, Math.max(0, clientX - left));
  };
  const selected = (event: PointerEvent): readonly [number, number] => {
    const ends = [begun!, leftOf(event)] as const;
    return [Math.min(...ends), Math.max(...ends)];
  };
  over.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'touch' || !event.isPrimary) return;
    begun = leftOf(event);
    over.setPointerCapture(event.pointerId);
  });
  // Without this, the browser would take the movement as the beginning of a scroll: it would cancel the selection, and ignore the next tap.
  over.addEventListener('touchmove', (event) => event.preventDefault(), { passive: false });
  over.addEventListener('pointermove', (event) => {
    if (begun === undefined) return;
    const [left, right] = selected(event);
    plot.setSelect({ left, top: 0, width: right - left, height: over.clientHeight }, false);
  });
  const end = (event: PointerEvent): void => {
    if (begun === undefined) return;
    const [left, right] = selected(event);
    begun = undefined;
    plot.setSelect(nothingSelected, false);
    if (event.type === 'pointerup' && right - left >= brushPixelsMin) brush(left, right);
  };
  over.addEventListener('pointerup', end);
  over.addEventListener('pointercancel', end);
}

/** Draws bars into an element. The caller destroys the returned plot. */
export function plotBars(
  element: HTMLElement,
  bars: StackedBars,
  zone: Zone,
  stepSeconds: number,
  events: PlotEvents,
): uPlot {
  const first = bars.seconds[0] ?? 0;
  const last = (bars.seconds.at(-1) ?? 0) + stepSeconds;
  const stepAt = (plot: uPlot, left: number): number => {
    const at = Math.floor((plot.posToVal(left, 'x') - first) / ((last - first) / bars.seconds.length));
    return Math.min(bars.seconds.length - 1, Math.max(0, at));
  };
  const range = lineRange(bars);
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: element.clientHeight,
    legend: { show: false },
    // The padding on the right leaves room for half of the last label, which is centred at its tick, or for the scale of the line.
    padding: [6, range === undefined ? 24 : 60, 0, 0],
    scales: {
      x: { time: true, range: () => [first, last] },
      y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.05)] },
      numbers: { range: () => (range === undefined || range[0] === range[1] ? [null, null] : [...range]) },
    },
    series: [{}, ...seriesOf(bars)],
    axes: axes(zone),
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: brushPixelsMin },
    },
    ...(zone === 'utc'
      ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') }
      : {}),
    hooks: {
      setCursor: [
        (plot) => {
          const { left = -1 } = plot.cursor;
          events.hover(left < 0 ? undefined : stepAt(plot, left));
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < brushPixelsMin) return;
          plot.setSelect(nothingSelected, false);
          events.brush(stepAt(plot, left), stepAt(plot, left + width));
        },
      ],
      ready: [
        (plot) => {
          let pressed = -1;
          plot.over.addEventListener('mousedown', (event) => (pressed = event.clientX));
          plot.over.addEventListener('click', (event) => {
            if (Math.abs(event.clientX - pressed) < brushPixelsMin)
              events.choose(stepAt(plot, plot.cursor.left ?? 0));
          });
          brushByTouch(plot, (left, right) => events.brush(stepAt(plot, left), stepAt(plot, right)));
        },
      ],
    },
  };
  return new uPlot(options, dataOf(bars, stepSeconds), element);
}
