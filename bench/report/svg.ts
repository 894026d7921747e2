export const gridColour = '#d8d8d8';
export const axisColour = '#555';
const textColour = '#222';

function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A text element. `x` and `y`, in pixels from the left and the top, are the start of its baseline. */
export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escapeXml(content)}</text>`;
}

interface PageHead {
  /** In pixels. */
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** What the plot shows. */
  readonly about: string;
}

/** An SVG document with a title. The title takes the first 60 pixels from the top. */
export function svgPage({ width, height, title, about }: PageHead, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="system-ui, sans-serif" font-size="12" fill="${textColour}">`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    text(16, 24, title, 'font-size="15" font-weight="600"'),
    text(16, 42, about, `fill="${axisColour}"`),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}
