import { useLayoutEffect, useRef } from 'preact/hooks';
import { usePage } from '../parts/viewer-context.js';
import { keyHelp } from './keys.js';

/** All keys. */
export function Help() {
  const { screen } = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = screen.menu.value === 'help';
  // Before the next key comes, which may be the one that closes it.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  // A browser tells of it later, when the next key may have opened it again.
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
