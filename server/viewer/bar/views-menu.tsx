import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { usePage } from '../parts/viewer-context.js';
import { addressOf } from '../query/address.js';
import { searchedField } from '../query/question.js';
import type { KeptView } from '../state/kept-views.js';
import { viewText } from '../state/view-text.js';

function SaveForm() {
  const { viewer, screen } = usePage();
  const view = viewer.view.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    if (name === '') return;
    viewer.saved.save({ name, address: addressOf(view) });
    screen.tell(`Saved as “${name}”`);
  };
  return (
    <form class="form-line" onSubmit={submit}>
      <label class="grows">
        Save what is shown as
        <input
          name="name"
          class="input"
          maxLength={120}
          defaultValue={viewText(view, searchedField(view, viewer.fields.value))}
          autocomplete="off"
        />
      </label>
      <button class="button is-main">Save</button>
    </form>
  );
}

function ViewLink({ view }: { readonly view: KeptView }) {
  const { viewer, screen } = usePage();
  const open = (event: Event): void => {
    event.preventDefault();
    screen.close();
    viewer.openAddress(view.address);
  };
  return (
    <a class="view-link" href={view.address} title={view.address} onClick={open}>
      {view.name}
    </a>
  );
}

/** The menu with saved views and the history of queries, both stored in this browser. */
export function ViewsMenu() {
  const { viewer } = usePage();
  const saved = viewer.saved.views.value;
  const history = viewer.history.views.value;
  return (
    <Menu name="views" button={<Icon name="star" />} label="Saved views and history (v)" side="right">
      <div class="views-menu">
        <SaveForm />
        <h2>Saved in this browser</h2>
        {saved.length === 0 && <p class="hint">None yet.</p>}
        <ul class="view-list">
          {saved.map((view) => (
            <li key={view.name}>
              <ViewLink view={view} />
              <button
                type="button"
                class="button is-bare"
                aria-label={`Remove ${view.name}`}
                title="Remove"
                onClick={() => viewer.saved.remove(view.name)}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
        <h2>History</h2>
        <ul class="view-list">
          {history.map((view) => (
            <li key={view.address}>
              <ViewLink view={view} />
            </li>
          ))}
        </ul>
        {history.length > 1 && (
          <button type="button" class="button is-outlined" onClick={() => viewer.history.clear()}>
            Clear the history
          </button>
        )}
      </div>
    </Menu>
  );
}
