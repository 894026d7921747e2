import { useState } from 'preact/hooks';
import { Button, CloseButton, ColumnToggle, useValueToggles, Icon, usePage } from './parts.js';
import { presence, typeFacts, type Field } from './state/field.js';
import {
  operatorWords,
  togglePresence,
  unwantedValues,
  wantedValues,
  type Operator,
} from './state/filter.js';
import { countText, shortCountText } from './state/texts.js';
import type { FacetState } from './state/histogram.js';

interface ValueRowProps {
  readonly field: Field;
  readonly value: string;
  readonly count: number;
  /** The count of the most frequent value. */
  readonly countMax: number;
}

function ValueRow({ field, value, count, countMax }: ValueRowProps) {
  const { viewer } = usePage();
  const { filters } = viewer.view.value;
  const isWanted = wantedValues(filters, field.name).includes(value);
  const isUnwanted = unwantedValues(filters, field.name).includes(value);
  const shown = value === '' ? '(empty)' : value;
  const { want, leaveOut } = useValueToggles(field, value);
  return (
    <li class={`facet-value ${isWanted ? 'is-wanted' : ''} ${isUnwanted ? 'is-unwanted' : ''}`}>
      <button
        type="button"
        class="facet-only"
        aria-pressed={isWanted}
        title={`Only ${field.name} ${shown}`}
        onClick={want}
      >
        <span class="facet-bar" style={{ width: `${(100 * count) / Math.max(1, countMax)}%` }} />
        <span class="facet-text">{shown}</span>
        <span class="count" title={countText(count)}>
          {shortCountText(count)}
        </span>
      </button>
      <Button
        look="bare"
        isPressed={isUnwanted}
        label={`Without ${field.name} ${shown}`}
        title="Leave out"
        onClick={leaveOut}
        icon="minus"
      />
    </li>
  );
}

function Facet({ field, state }: { readonly field: Field; readonly state: FacetState | undefined }) {
  const { viewer } = usePage();
  const { filters } = viewer.view.value;
  // A failure that the table reports is not repeated for each field, and has no counts of an earlier question beside it.
  if (viewer.window.state.value.status === 'failed' && state?.kind !== 'ready')
    return <p class="hint">not counted</p>;
  if (state?.failure !== undefined)
    return (
      <p class="wrong" title={state.failure.advice}>
        {state.failure.title}: {state.failure.detail}
      </p>
    );
  const counts = state?.counts;
  if (counts === undefined) return <p class="hint">counting…</p>;
  const top = counts.top.map(({ value, count }) => ({ value: String(value), count }));
  // Values of filters are listed even without a record that has them, so that the user can remove the filter.
  const named = [...wantedValues(filters, field.name), ...unwantedValues(filters, field.name)];
  const missing = named.filter((value) => !top.some((other) => other.value === value));
  const countMax = top[0]?.count ?? 0;
  return (
    <ul
      class={`facet-values ${state?.kind === 'loading' ? 'is-stale' : ''}`}
      aria-label={`Values of ${field.name}`}
    >
      {[...top, ...missing.map((value) => ({ value, count: 0 }))].map(({ value, count }) => (
        <ValueRow key={value} field={field} value={value} count={count} countMax={countMax} />
      ))}
      {counts.other > 0 && <li class="hint">other values: {countText(counts.other)}</li>}
      {top.length === 0 && counts.nulls === 0 && <li class="hint">nothing matches</li>}
    </ul>
  );
}

interface PresenceProps {
  readonly field: Field;
  /** The number of records without a value. */
  readonly nulls: number;
}

/** The toggles for records with a value of the field, and for those without. */
function Presence({ field: { name }, nulls }: PresenceProps) {
  const { viewer } = usePage();
  const { filters } = viewer.view.value;
  const toggle = (operator: Operator): void =>
    viewer.change({ filters: togglePresence(filters, name, operator), cursor: undefined, isContext: false });
  return (
    <div class="presence" role="group" aria-label={name}>
      {presence.map((operator) => (
        <Button
          key={operator}
          look="quiet"
          isPressed={filters.some((filter) => filter.field === name && filter.operator === operator)}
          title={`Only records in which ${name} ${operatorWords(operator)}`}
          onClick={() => toggle(operator)}
        >
          {operator === 'exists' ? 'has a value' : 'has none'}
          {operator === 'not_exists' && nulls > 0 && <span class="count">{countText(nulls)}</span>}
        </Button>
      ))}
    </div>
  );
}

function FieldRow({ field }: { readonly field: Field }) {
  const { viewer } = usePage();
  const isOpen = viewer.openFields.value.has(field.name);
  const state = viewer.facets.state.value.get(field.name);
  return (
    <li class="field">
      <div class="field-head">
        <button
          type="button"
          class="field-name"
          aria-expanded={isOpen}
          title={field.description ?? `${field.name}, ${field.type}`}
          onClick={() => viewer.openFacet(field.name, !isOpen)}
        >
          <Icon name={isOpen ? 'down' : 'right'} />
          <span>{field.name}</span>
          <span class="field-type">{field.type}</span>
        </button>
        <ColumnToggle name={field.name} />
      </div>
      {isOpen && typeFacts[field.type].isCounted && <Facet field={field} state={state} />}
      {isOpen && <Presence field={field} nulls={state?.counts?.nulls ?? 0} />}
    </li>
  );
}

/** The pane of fields: their most frequent values, and which of them are columns. */
export function FieldsPane() {
  const { viewer } = usePage();
  const [searchText, setSearchText] = useState('');
  const fields = viewer.fields.value.filter(({ name }) =>
    name.toLowerCase().includes(searchText.toLowerCase()),
  );
  return (
    <aside class="fields-pane" aria-label="Fields">
      <div class="pane-head">
        <input
          type="search"
          class="input"
          placeholder="Fields"
          aria-label="Fields whose name contains this"
          value={searchText}
          onInput={(event) => setSearchText(event.currentTarget.value)}
        />
        <CloseButton
          what="the fields"
          shortcut="s"
          close={() => (viewer.preferences.hasFields.value = false)}
        />
      </div>
      <ul class="field-list">
        {fields.map((field) => (
          <FieldRow key={field.name} field={field} />
        ))}
      </ul>
    </aside>
  );
}
