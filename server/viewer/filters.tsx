import { useState } from 'preact/hooks';
import { usePage, Icon, Menu } from './parts.js';
import { anyField, fieldWords, textFieldOf, typeFacts, type Field } from './state/field.js';
import {
  type Filter,
  anyFieldOperators,
  operatorWords,
  takesMany,
  type Operator,
  gathered,
  negated,
} from './state/filter.js';
import { rangeText, filterText } from './state/view.js';

interface EditorProps {
  /** The filter to change; undefined for a new one. */
  readonly filter?: Filter | undefined;
  readonly done: (filter: Filter) => void;
}

interface ValueProps {
  readonly field: Field;
  readonly operator: Operator;
  readonly values: readonly string[];
}

function ValueInput({ field, operator, values }: ValueProps) {
  const { viewer } = usePage();
  const { choices, example } = typeFacts[field.type];
  if (choices !== undefined)
    return (
      <select name="value" aria-label="Value" defaultValue={values[0]}>
        {choices.map((choice) => (
          <option key={choice} selected={values[0] === choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  if (takesMany(operator))
    return (
      <textarea
        name="value"
        class="input"
        rows={4}
        aria-label="Values, one a line"
        placeholder="one a line"
        defaultValue={values.join('\n')}
      />
    );
  const known = viewer.facets.state.value.get(field.name)?.counts?.top ?? [];
  return (
    <>
      <input
        name="value"
        class="input"
        aria-label="Value"
        placeholder={example}
        list="known-values"
        autocomplete="off"
        spellcheck={false}
        defaultValue={values[0] ?? ''}
      />
      <datalist id="known-values">
        {known.map(({ value }) => (
          <option key={String(value)} value={String(value)} />
        ))}
      </datalist>
    </>
  );
}

/** The fields, with `anyField` added where there is a string field. */
function withAny(fields: readonly Field[]): readonly Field[] {
  const hasText = fields.some(({ type }) => type === 'string');
  return hasText ? [...fields, { name: anyField, type: 'string' }] : fields;
}

/** The form for a filter: field, operator, values. */
function FilterEditor({ filter, done }: EditorProps) {
  const { viewer } = usePage();
  const fields = withAny(viewer.fields.value);
  const [name, setName] = useState(filter?.field ?? fields.find(({ type }) => type !== 'time')?.name ?? '');
  const field = fields.find((other) => other.name === name) ?? fields[0];
  const [chosen, setChosen] = useState<Operator | undefined>(filter?.operator);
  if (field === undefined) return <p class="hint">The fields of the agent are not known yet.</p>;
  const operators = field.name === anyField ? anyFieldOperators : typeFacts[field.type].operators;
  const usual = field.name === textFieldOf(viewer.fields.value) ? 'like' : operators[0]!;
  const operator = chosen !== undefined && operators.includes(chosen) ? chosen : usual;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = String(new FormData(event.currentTarget as HTMLFormElement).get('value'));
    const lines = given.split('\n').map((line) => line.replaceAll('\r', ''));
    const values = takesMany(operator) ? lines.filter((line) => line !== '') : [given];
    if (values.length > 0) done({ field: field.name, operator, values });
  };
  return (
    <form class="filter-editor" onSubmit={submit}>
      <div class="form-line">
        <select
          aria-label="Field"
          value={field.name}
          onChange={(event) => setName(event.currentTarget.value)}
        >
          {fields.map((other) => (
            <option key={other.name} value={other.name}>
              {fieldWords(other.name)}
            </option>
          ))}
        </select>
        <select
          aria-label="Comparison"
          value={operator}
          onChange={(event) => setChosen(event.currentTarget.value as Operator)}
        >
          {operators.map((other) => (
            <option key={other} value={other}>
              {operatorWords(other)}
            </option>
          ))}
        </select>
      </div>
      <ValueInput
        key={`${field.name} ${takesMany(operator)}`}
        field={field}
        operator={operator}
        values={filter?.values ?? []}
      />
      <div class="form-line">
        <button class="button is-main">{filter === undefined ? 'Add' : 'Change'}</button>
        <span class="hint">Records without a value match no filter.</span>
      </div>
    </form>
  );
}

interface ChipProps {
  readonly filter: Filter;
  readonly at: number;
  /** Replaces the filter; removes it where none is given. */
  readonly replace: (filter?: Filter) => void;
}

function Chip({ filter, at, replace }: ChipProps) {
  const { viewer, screen } = usePage();
  const text = filterText(filter);
  const type = viewer.fields.value.find(({ name }) => name === filter.field)?.type ?? 'string';
  const words = (
    <>
      <b>{fieldWords(filter.field)}</b> <i>{operatorWords(filter.operator)}</i>{' '}
      <span>{filter.values.map((value) => (value === '' ? '""' : value)).join(', ')}</span>
    </>
  );
  const change = (changed: Filter): void => {
    screen.close();
    replace(changed);
  };
  return (
    <li class="chip">
      <Menu name={`chip ${at}`} button={words} label={`Change: ${text}`}>
        <FilterEditor filter={filter} done={change} />
      </Menu>
      <button
        type="button"
        class="button is-bare"
        aria-label={`Negate: ${text}`}
        title="Negate this filter"
        onClick={() => replace(negated(filter, type))}
      >
        ≠
      </button>
      <button
        type="button"
        class="button is-bare"
        aria-label={`Remove: ${text}`}
        title="Remove"
        onClick={() => replace()}
      >
        <Icon name="close" />
      </button>
    </li>
  );
}

/** The chips of the filters, each with controls to change, invert or remove it. */
export function Chips() {
  const { viewer, screen } = usePage();
  const { filters, text, range, isContext } = viewer.view.value;
  const put = (changed: readonly Filter[]): void => {
    viewer.change({ filters: gathered(changed), cursor: undefined, isContext: false });
  };
  const replace = (at: number, filter?: Filter): void =>
    put(filters.flatMap((old, i) => (i !== at ? [old] : filter === undefined ? [] : [filter])));
  const add = (filter: Filter): void => {
    screen.close();
    put([...filters, filter]);
  };
  const clear = (): void => viewer.change({ filters: [], text: '', cursor: undefined, isContext: false });
  const hasAny = filters.length > 0 || text !== '';
  return (
    <section class={`chips ${isContext ? 'is-off' : ''}`} aria-label="Filters">
      <Menu
        name="filter"
        button={
          <>
            <Icon name="plus" /> Filter
          </>
        }
        label="Add a filter (f)"
      >
        <FilterEditor done={add} />
      </Menu>
      {range.kind !== 'all' && (
        <button type="button" class="button is-outlined range-chip" onClick={() => screen.toggle('range')}>
          <Icon name="clock" /> {rangeText(range, viewer.preferences.zone.value)}
        </button>
      )}
      <ul class="chip-list">
        {filters.map((filter, at) => (
          <Chip
            key={filterText(filter)}
            filter={filter}
            at={at}
            replace={(changed) => replace(at, changed)}
          />
        ))}
      </ul>
      {hasAny && (
        <button type="button" class="button is-quiet" onClick={clear}>
          Clear all
        </button>
      )}
    </section>
  );
}
