import { useLayoutEffect, useRef } from 'preact/hooks';
import { AgentsMenu } from './agents-menu.js';
import { Button, Icon, usePage } from './parts.js';
import { anyField, fieldWords } from './state/field.js';
import { searchedField } from './state/view.js';
import { DisplayMenu, DownloadMenu, RangeMenu, ViewsMenu } from './menus.js';

function FieldChoice({ searched }: { readonly searched: string }) {
  const { viewer } = usePage();
  const strings = viewer.fields.value.filter(({ type }) => type === 'string');
  const choose = (name: string): void =>
    viewer.change({ textField: name === anyField ? undefined : name, cursor: undefined });
  return (
    <label
      class="search-field"
      title="Where to search for the text. Over a long time range, searching one field is faster than searching all"
    >
      in
      <select
        aria-label="Field that is searched"
        value={searched}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        <option value={anyField}>any field</option>
        {strings.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The search box: the text to search for, and the field to search in. */
function SearchBox() {
  const { viewer } = usePage();
  const view = viewer.view.value;
  const searched = searchedField(view, viewer.fields.value);
  const label = `Text in ${fieldWords(searched ?? anyField)}`;
  const input = useRef<HTMLInputElement>(null);
  // A layout effect runs before the next key event, so that it does not overwrite what is typed after Enter.
  useLayoutEffect(() => {
    if (input.current !== null) input.current.value = view.text;
  }, [view.text]);
  const submit = (event: Event): void => {
    event.preventDefault();
    viewer.change({ text: input.current?.value ?? '', cursor: undefined, isContext: false });
  };
  const clear = (): void => {
    viewer.change({ text: '' });
    input.current?.focus();
  };
  return (
    <form class="search-box" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={input}
        id="search"
        type="search"
        class="search-input"
        placeholder={label}
        aria-label={label}
        title={'a b: both   "a b": as one text   -a: without   a or b: one of both   /a+b/: a pattern'}
        aria-keyshortcuts="/"
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="search"
        disabled={searched === undefined && viewer.fields.value.length > 0}
        defaultValue={view.text}
        onChange={submit}
      />
      {view.text !== '' && (
        <Button look="bare" label="Clear the text" title="Clear" onClick={clear} icon="close" />
      )}
      {searched !== undefined && <FieldChoice searched={searched} />}
    </form>
  );
}

function LiveButton() {
  const { viewer } = usePage();
  const { isLive } = viewer.view.value;
  const { kind } = viewer.tail.state.value;
  const words = { off: 'Live', connecting: 'Live…', open: 'Live', failed: 'Live: waiting' }[kind];
  return (
    <Button
      class={`live is-${kind}`}
      isPressed={isLive}
      title="Show records as they come (l)"
      onClick={() => viewer.toggleLive()}
    >
      <span class="live-dot" aria-hidden="true" />
      {words}
    </Button>
  );
}

/** The bar at the top: agents, search, filters and time range. */
export function TopBar() {
  const { viewer, screen } = usePage();
  const { hasFields } = viewer.preferences;
  return (
    <header class="top-bar">
      <h1 class="brand" title="Logstrata">
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
          <rect class="stratum-1" x="1" y="2" width="14" height="3" rx="1" />
          <rect class="stratum-2" x="1" y="6.5" width="10" height="3" rx="1" />
          <rect class="stratum-3" x="1" y="11" width="14" height="3" rx="1" />
        </svg>
        <span>Logstrata</span>
      </h1>
      <AgentsMenu />
      <SearchBox />
      <RangeMenu />
      <Button label="Ask again" title="Ask again (r)" onClick={() => viewer.askAgain()} icon="again" />
      <LiveButton />
      <div class="top-tools">
        <Button
          icon="fields"
          isPressed={hasFields.value}
          label="Fields"
          title="Fields (s)"
          onClick={() => (hasFields.value = !hasFields.value)}
        />
        <ViewsMenu />
        <DownloadMenu />
        <DisplayMenu />
        <Button
          label="Keys"
          title="Keys (?)"
          aria-haspopup="dialog"
          onClick={() => screen.toggle('help')}
          icon="help"
        />
      </div>
    </header>
  );
}
