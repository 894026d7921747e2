/** SVG paths in a box of 16 by 16, drawn as lines in the colour of the text. */
const paths = {
  search: 'M7 12.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11M11 11l3.5 3.5',
  clock: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13M8 4v4.2l2.8 1.8',
  close: 'M3.5 3.5l9 9m0-9l-9 9',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  down: 'M4 6l4 4 4-4',
  left: 'M10 4L6 8l4 4',
  right: 'M6 4l4 4-4 4',
  fields: 'M2 3.5h3M2 8h3M2 12.5h3M7.5 3.5H14M7.5 8H14M7.5 12.5H14',
  bars: 'M2.5 14V9M6 14V4.5M9.5 14V7M13 14V2',
  star: 'M8 1.8l1.9 4 4.3.6-3.1 3 .8 4.4L8 11.7l-3.9 2.1.8-4.4-3.1-3 4.3-.6z',
  download: 'M8 2v8.5M4.5 7L8 10.5 11.5 7M2.5 14h11',
  sliders: 'M2 4.5h7m3 0h2M2 11.5h2m3 0h7M9 2.5v4M7 9.5v4',
  help: 'M5.5 6a2.5 2.5 0 1 1 3.7 2.2C8.400 8.700 8 9.200 8 10.200M8 13v.2',
  again: 'M13.500 8A5.500 5.500 0 1 1 11.700 3.900M13.500 1.500v3.500H10',
  only: 'M2 3h12L9.500 8.500V14l-3-1.500v-4z',
  without: 'M2 3h12L9.500 8.500V14l-3-1.500v-4zM1.500 1.500l13 13',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  link: 'M6.500 9.500l3-3M7 4.500l1.500-1.500a3.200 3.200 0 0 1 4.500 4.500L11.500 9M9 11.500L7.500 13A3.200 3.200 0 0 1 3 8.500L4.500 7',
  column: 'M2.500 2.500h11v11h-11zM8 2.500v11',
  context: 'M2 3h12M2 6.500h12M2 13h12M5 9.800h6',
  key: 'M10.500 9.500a4 4 0 1 0-3.600-2.300L2 12v2h2.500v-1.500H6V11l1.200-1.300A4 4 0 0 0 10.500 9.500M11 5v.1',
} as const;

/** The name of an icon. */
export type IconName = keyof typeof paths;

/** An icon. It is hidden from screen readers, so it needs a text or a label beside it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
