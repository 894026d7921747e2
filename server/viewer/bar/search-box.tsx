import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { usePage } from '../parts/viewer-context.js';
import { searchedField } from '../query/question.js';

/** Text to search for, and the field in which. */
export function SearchBox() {
  const { viewer } = usePage();
  const view = viewer.view.value;
  const strings = viewer.fields.value.filter(({ type }) => type === 'string');
  const searched = searchedField(view, viewer.fields.value);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
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
        placeholder={`Text in ${searched ?? 'records'}`}
        aria-label={`Text in ${searched ?? 'records'}`}
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
      {strings.length > 0 && (
        <label
          class="search-field"
          title="The field that is searched. Filters on several fields must all hold"
        >
          in
          <select
            aria-label="Field that is searched"
            value={searched}
            onChange={(event) => viewer.change({ textField: event.currentTarget.value })}
          >
            {strings.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </form>
  );
}
