import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { usePage } from '../parts/viewer-context.js';
import { fieldWords } from '../query/field.js';
import { gathered, negated, type Filter } from '../query/filter.js';
import { operatorWords } from '../query/operators.js';
import { rangeText } from '../query/time-range.js';
import { filterText } from '../state/view-text.js';
import { FilterEditor } from './filter-editor.js';

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
