import { createContext, type ComponentChildren, type ComponentProps } from 'preact';
import { useContext, useLayoutEffect, useRef } from 'preact/hooks';
import type { Screen, MenuName } from './state/screen.js';
import type { Viewer } from './state/viewer.js';
import type { Failure } from './state/failure.js';
import { shortened } from './state/view.js';
import type { Field } from './state/field.js';
import { toggleUnwanted, toggleWanted } from './state/filter.js';
import { markMatches, type Needle } from './state/texts.js';

/** What all components of the page use. */
export interface Page {
  readonly viewer: Viewer;
  readonly screen: Screen;
}

/** Provides the page to the components below. */
export const PageContext = createContext<Page | undefined>(undefined);

/** The page that a component belongs to. Throws outside of a `PageContext`. */
export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error('a part of the page stands outside of it');
  return page;
}

interface NoticeProps {
  readonly failure: Failure;
  readonly again: () => void;
  /** Whether the notice is shown between records instead of in place of them. */
  readonly isSmall?: boolean;
}

/** A text in which parts between backticks are shown as code. */
function WithCode({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

function ShorterRange() {
  const { viewer } = usePage();
  const shorten = (): void =>
    viewer.change({ range: shortened(viewer.view.peek().range, viewer.extent.peek()), cursor: undefined });
  return (
    <Button look="main" onClick={shorten}>
      The newest tenth of the time
    </Button>
  );
}

/** Shows a failure: its title, the reported detail, and advice. */
export function FailureNotice({ failure, again, isSmall = false }: NoticeProps) {
  const { kind, title, detail, advice } = failure;
  const isTooMuch = kind === 'reading' || kind === 'timeout';
  return (
    <div class={isSmall ? 'notice is-small' : 'notice'} role="alert">
      <strong class="notice-title">{title}</strong>
      <p class="notice-detail">{detail}</p>
      <p>
        <WithCode text={advice} />
      </p>
      {kind === 'token' || kind === 'refused' || kind === 'forbidden' ? (
        <TokenForm done={again} />
      ) : (
        <div class="form-line">
          {isTooMuch && !isSmall && <ShorterRange />}
          <Button look="outlined" onClick={again}>
            Ask again
          </Button>
        </div>
      )}
    </div>
  );
}

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

interface ButtonProps extends Omit<ComponentProps<'button'>, 'icon' | 'label'> {
  readonly look?: 'bare' | 'main' | 'outlined' | 'quiet';
  readonly icon?: IconName;
  /** The accessible name, where the content does not say what the button does. */
  readonly label?: string;
  /** Whether what the button toggles is on. */
  readonly isPressed?: boolean;
}

/** A button, with an icon before its content. It submits no form. */
export function Button({ look, icon, label, isPressed, class: own, children, ...others }: ButtonProps) {
  const classes = ['button', look === undefined ? '' : `is-${look}`, own ?? ''].filter((name) => name !== '');
  return (
    <button type="button" {...others} class={classes.join(' ')} aria-label={label} aria-pressed={isPressed}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Toggles a value of a field among the wanted or the unwanted values. A second call undoes the first. */
export interface ValueToggles {
  readonly want: () => void;
  readonly leaveOut: () => void;
}

/** The toggles for a value. The open record stays open; the context view ends, as it has no filters. */
export function useValueToggles(field: Field, value: string): ValueToggles {
  const { viewer } = usePage();
  const change = (toggle: typeof toggleWanted) => (): void =>
    viewer.change({ filters: toggle(viewer.view.peek().filters, field, value), isContext: false });
  return { want: change(toggleWanted), leaveOut: change(toggleUnwanted) };
}

/** A button that shows a field as a column, or removes the column. */
export function ColumnToggle({ name }: { readonly name: string }) {
  const { viewer } = usePage();
  const isColumn = viewer.columns.value.some((column) => column.name === name);
  return (
    <Button
      look="bare"
      icon="column"
      isPressed={isColumn}
      label={`Column ${name}`}
      title={isColumn ? 'Hide the column' : 'Show as a column'}
      onClick={() => viewer.toggleColumn(name)}
    />
  );
}

interface PaneHeadProps {
  /** What is closed, such as `the fields`. */
  readonly what: string;
  readonly shortcut: string;
  readonly close: () => void;
}

/** A button that closes a pane beside the table. */
export function CloseButton({ what, shortcut, close }: PaneHeadProps) {
  return (
    <Button look="bare" label={`Close ${what}`} title={`Close (${shortcut})`} onClick={close} icon="close" />
  );
}

interface MarkedTextProps {
  readonly text: string;
  readonly needles: readonly Needle[];
}

/** A text with the matches of needles marked. */
export function MarkedText({ text, needles }: MarkedTextProps) {
  if (needles.length === 0) return <>{text}</>;
  return (
    <>
      {markMatches(text, needles).map(({ text: part, isMatch }, i) =>
        isMatch ? <mark key={i}>{part}</mark> : part,
      )}
    </>
  );
}

interface MenuProps {
  readonly name: MenuName;
  /** The content of the button. */
  readonly button: ComponentChildren;
  /** The accessible name of the button, and its tooltip. */
  readonly label: string;
  readonly class?: string;
  /** The side of the button that the menu is aligned to. */
  readonly side?: 'left' | 'right';
  readonly children: ComponentChildren;
}

const focusable = 'input:not([type=hidden]), select, textarea, button, a[href]';

/** A button and a popover, which stays open until Escape or a click outside. */
export function Menu({ name, button, label, class: className = '', side = 'left', children }: MenuProps) {
  const { screen } = usePage();
  const isOpen = screen.menu.value === name;
  const whole = useRef<HTMLDivElement>(null);
  // A layout effect moves the focus before the next key event, so that fast typing goes to the popover.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const opener = document.activeElement;
    whole.current?.querySelector<HTMLElement>(`.popover :is(${focusable})`)?.focus();
    const press = (event: PointerEvent): void => {
      if (event.target instanceof Node && whole.current?.contains(event.target) !== true) screen.close();
    };
    document.addEventListener('pointerdown', press);
    return () => {
      document.removeEventListener('pointerdown', press);
      // The focus returns to the button only if it has not moved elsewhere meanwhile.
      const isLost = document.activeElement === null || document.activeElement === document.body;
      if (isLost && opener instanceof HTMLElement) opener.focus();
    };
  }, [isOpen]);
  return (
    <div class={`menu ${className}`} ref={whole}>
      <Button
        class={isOpen ? 'is-on' : ''}
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        label={label}
        title={label}
        onClick={() => screen.toggle(name)}
      >
        {button}
      </Button>
      {isOpen && (
        <div class={`popover at-${side}`} role="dialog" aria-label={label}>
          {children}
        </div>
      )}
    </div>
  );
}

/** The form for the token that requests are sent with. */
export function TokenForm({ done }: { readonly done: () => void }) {
  const { viewer, screen } = usePage();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement).get('token');
    viewer.token.set(typeof given === 'string' ? given : undefined);
    screen.close();
    done();
  };
  return (
    <form class="token-form" onSubmit={submit}>
      <label>
        Token
        <input name="token" type="password" autocomplete="off" spellcheck={false} class="input" />
      </label>
      <button class="button is-main">Use it</button>
      <p class="hint">It is sent with each request, and forgotten when this tab is closed.</p>
    </form>
  );
}
