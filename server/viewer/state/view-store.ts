import { signal, type ReadonlySignal } from '@preact/signals';
import { addressOf, readAddress } from '../query/address.js';
import { asksTheSame, type View } from '../query/view.js';

/** The parts of `window` that the view store uses; tests can replace them. */
export interface AddressBar {
  readonly location: { readonly hash: string };
  readonly history: Pick<History, 'pushState' | 'replaceState'>;
  addEventListener(type: 'popstate', call: () => void): void;
}

/** Keeps the view and the page's address in step. */
export class ViewStore {
  private readonly current;

  constructor(private readonly bar: AddressBar) {
    this.current = signal(readAddress(bar.location.hash));
    bar.addEventListener('popstate', () => (this.current.value = readAddress(bar.location.hash)));
  }

  /** The current view. */
  get view(): ReadonlySignal<View> {
    return this.current;
  }

  /** Changes the view. A change that requests other records adds an entry to the browser's history; one of the display does not. */
  change(part: Partial<View>): void {
    const before = this.current.peek();
    const after = { ...before, ...part };
    const address = addressOf(after);
    if (address !== addressOf(before) || this.bar.location.hash === '') {
      // A page that was opened without an address gets one without a new history entry.
      const isStep =
        before.agent !== '' && (!asksTheSame(before, after) || before.isContext !== after.isContext);
      if (isStep) this.bar.history.pushState(null, '', address);
      else this.bar.history.replaceState(null, '', address);
    }
    this.current.value = after;
  }

  /** Opens a stored address. */
  open(address: string): void {
    this.bar.history.pushState(null, '', address);
    this.current.value = readAddress(address);
  }
}
