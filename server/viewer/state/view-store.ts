import { signal, type ReadonlySignal } from '@preact/signals';
import { addressOf, readAddress } from '../query/address.js';
import { asksTheSame, type View } from '../query/view.js';

/** The parts of a window that an address needs, so that tests can do without one. */
export interface AddressBar {
  readonly location: { readonly hash: string };
  readonly history: Pick<History, 'pushState' | 'replaceState'>;
  addEventListener(type: 'popstate', call: () => void): void;
}

/** The view, which is the address: each change of the one is one of the other. */
export class ViewStore {
  private readonly current;

  constructor(private readonly bar: AddressBar) {
    this.current = signal(readAddress(bar.location.hash));
    bar.addEventListener('popstate', () => (this.current.value = readAddress(bar.location.hash)));
  }

  get view(): ReadonlySignal<View> {
    return this.current;
  }

  /** Changes the view. A step that asks for other records can be gone back from; how they are shown can't. */
  change(part: Partial<View>): void {
    const before = this.current.peek();
    const after = { ...before, ...part };
    const address = addressOf(after);
    if (address !== addressOf(before) || this.bar.location.hash === '') {
      // A page that is opened without an address gets one, which is no step.
      const isStep =
        before.agent !== '' && (!asksTheSame(before, after) || before.isContext !== after.isContext);
      if (isStep) this.bar.history.pushState(null, '', address);
      else this.bar.history.replaceState(null, '', address);
    }
    this.current.value = after;
  }

  /** Goes to an address that was kept. */
  open(address: string): void {
    this.bar.history.pushState(null, '', address);
    this.current.value = readAddress(address);
  }
}
