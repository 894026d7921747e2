import { signal } from '@preact/signals';
import type { Extent } from './view.js';

/** The menus and dialogs that open over the page; one at a time. */
export type MenuName =
  | 'agents'
  | 'range'
  | 'views'
  | 'download'
  | 'display'
  | 'filter'
  | 'help'
  | 'token'
  | `chip ${string}`
  | `or ${number}`
  | `column ${string}`;

/** Milliseconds that a toast is shown. */
const toastMs = 2500;

/** The state of the page that is not part of the address. */
export class Screen {
  readonly menu = signal<MenuName | undefined>(undefined);
  /** The cursor of the row that the keyboard moves from. */
  readonly current = signal<string | undefined>(undefined);
  /** The time range of the visible rows. */
  readonly visible = signal<Extent | undefined>(undefined);
  readonly toast = signal('');
  /** Whether the page uses dark colours. */
  readonly isDark = signal(false);
  private timer: ReturnType<typeof setTimeout> | undefined;

  toggle(menu: MenuName): void {
    this.menu.value = this.menu.peek() === menu ? undefined : menu;
  }

  close(): void {
    this.menu.value = undefined;
  }

  /** Shows a toast. */
  tell(text: string): void {
    clearTimeout(this.timer);
    this.toast.value = text;
    this.timer = setTimeout(() => (this.toast.value = ''), toastMs);
  }

  /** Copies a text to the clipboard, and reports that in a toast. */
  async copy(text: string, what: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.tell(`${what} copied`);
    } catch {
      this.tell('The browser does not allow copying here. It allows it over https and on localhost.');
    }
  }
}
