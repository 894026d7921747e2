import { useLayoutEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { usePage } from '../parts/viewer-context.js';
import { anyField, fieldWords } from '../query/field.js';
import { searchedField } from '../query/question.js';

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
export function SearchBox() {
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
        aria-keyshortcuts="/"
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="search"
        disabled={searched === undefined && viewer.fields.value.length > 0}
        defaultValue={view.text}
        onChange={submit}
      />
      {view.text !== '' && (
        <button
          type="button"
          class="button is-bare"
          aria-label="Clear the text"
          title="Clear"
          onClick={clear}
        >
          <Icon name="close" />
        </button>
      )}
      {searched !== undefined && <FieldChoice searched={searched} />}
    </form>
  );
}
