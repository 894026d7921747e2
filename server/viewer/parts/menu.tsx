import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { MenuName } from '../state/screen.js';
import { usePage } from './viewer-context.js';

interface MenuProps {
  readonly name: MenuName;
  /** What the button shows. */
  readonly button: ComponentChildren;
  /** What the button is called, where what it shows are no words; also its tip. */
  readonly label: string;
  readonly class?: string;
  /** At which side of the button the menu hangs. */
  readonly side?: 'left' | 'right';
  readonly children: ComponentChildren;
}

const focusable = 'input:not([type=hidden]), select, textarea, button, a[href]';

/** A button, and what opens below it until one presses Escape, or outside of it. */
export function Menu({ name, button, label, class: className = '', side = 'left', children }: MenuProps) {
  const { screen } = usePage();
  const isOpen = screen.menu.value === name;
  const whole = useRef<HTMLDivElement>(null);
  // Before the next key comes: it is for what has opened, however fast one types.
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
      // Whoever has gone on to something else stays there.
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
