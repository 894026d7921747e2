import type { BarLayer } from './stacked-bars.js';

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
export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The channels of a hex colour. Minified style sheets have the short form `#fff` as well. */
function channelsOf(hex: string): readonly number[] {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

/** The colour of a layer for a canvas, which can't use CSS variables. */
export function canvasColour(layer: Coloured): string {
  const part = percentOf(layer) / 100;
  const ground = channelsOf(colourOf('--ground'));
  const mixed = channelsOf(colourOf(nameOf(layer))).map((channel, i) =>
    Math.round(channel * part + ground[i]! * (1 - part)),
  );
  return `rgb(${mixed.join(' ')})`;
}
