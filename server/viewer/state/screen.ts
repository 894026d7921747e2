import { signal } from '@preact/signals';
import type { Extent } from '../query/time-range.js';

/** Things that open over the page; one at a time. */
export type MenuName =
  | 'range'
  | 'views'
  | 'download'
  | 'display'
  | 'filter'
  | 'help'
  | 'token'
  | `chip ${number}`
  | `column ${string}`;

/** A toast stays so long. */
const toastMs = 2500;

/** What is open, chosen and in sight on the page: nothing that an address would hold. */
export class Screen {
  readonly menu = signal<MenuName | undefined>(undefined);
  /** The row that keys move from. */
  readonly current = signal<string | undefined>(undefined);
  /** The times of the rows in sight. */
  readonly visible = signal<Extent | undefined>(undefined);
  readonly toast = signal('');
  /** Which colours the page has at the moment. */
  readonly isDark = signal(false);
  private timer: ReturnType<typeof setTimeout> | undefined;

  toggle(menu: MenuName): void {
    this.menu.value = this.menu.peek() === menu ? undefined : menu;
  }

  close(): void {
    this.menu.value = undefined;
  }

  /** Says something for a moment. */
  tell(text: string): void {
    clearTimeout(this.timer);
    this.toast.value = text;
    this.timer = setTimeout(() => (this.toast.value = ''), toastMs);
  }

  /** Copies a text, and says so. */
  async copy(text: string, what: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.tell(`${what} copied`);
    } catch {
      this.tell('The browser did not let the page copy. It does over https and on localhost.');
    }
  }
}
