import type { BarLayer } from './stacked-bars.js';

/** Colours for values that say nothing of how bad a record is. */
const hues = 6;
/** How much of its colour each further shade has less, in percent, and how much the last one has still. */
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

/** The colour of a layer for the style sheet. */
export function styleColour(layer: Coloured): string {
  return `color-mix(in srgb, var(${nameOf(layer)}) ${percentOf(layer)}%, var(--ground))`;
}

/** What a colour of the style sheet is at the moment: `#12161b`. */
export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Of `#12161b`, or of `#fff`, which is how a style sheet is made shorter. */
function channelsOf(hex: string): readonly number[] {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1);
  return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
}

/** The same colour for a canvas, which knows no variables. */
export function canvasColour(layer: Coloured): string {
  const part = percentOf(layer) / 100;
  const ground = channelsOf(colourOf('--ground'));
  const mixed = channelsOf(colourOf(nameOf(layer))).map((channel, i) =>
    Math.round(channel * part + ground[i]! * (1 - part)),
  );
  return `rgb(${mixed.join(' ')})`;
}
