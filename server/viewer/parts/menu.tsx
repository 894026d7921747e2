import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { MenuName } from '../state/screen.js';
import { usePage } from './viewer-context.js';

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
      <button
        type="button"
        class={`button ${isOpen ? 'is-on' : ''}`}
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        aria-label={label}
        title={label}
        onClick={() => screen.toggle(name)}
      >
        {button}
      </button>
      {isOpen && (
        <div class={`popover at-${side}`} role="dialog" aria-label={label}>
          {children}
        </div>
      )}
    </div>
  );
}
