import { useLayoutEffect, useRef } from 'preact/hooks';
import { usePage } from '../parts/viewer-context.js';
import { keyHelp } from './keys.js';

/** The dialog that lists all keyboard shortcuts. */
export function Help() {
  const { screen } = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = screen.menu.value === 'help';
  // A layout effect runs before the next key event, which may close the dialog.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  // Browsers send `close` later; by then a key may have opened the dialog again.
  const closed = (): void => {
    if (isOpen && dialog.current?.open === false) screen.close();
  };
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={closed}>
      <h2>Keys</h2>
      <dl>
        {keyHelp.map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="button is-main" onClick={() => screen.close()}>
        Close
      </button>
    </dialog>
  );
}
