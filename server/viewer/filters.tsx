import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { Button, usePage, Icon, Menu } from './parts.js';
import { anyField, fieldWords, textFieldOf, typeFacts, type Field } from './state/field.js';
import {
  type Conditions,
  type Filter,
  anyFieldOperators,
  canBeMember,
  conditionList,
  conditionsOf,
  operatorWords,
  takesMany,
  takesNone,
  type Operator,
  gathered,
  negated,
} from './state/filter.js';
import { rangeText, filterText, groupText } from './state/view.js';

interface EditorProps {
  /** The filter to change; undefined for a new one. */
  readonly filter?: Filter | undefined;
  /** Whether the filter is one of a group. */
  readonly isMember?: boolean;
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
  if (takesNone(operator)) return null;
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
function FilterEditor({ filter, isMember = false, done }: EditorProps) {
  const { viewer } = usePage();
  const fields = withAny(viewer.fields.value);
  const [name, setName] = useState(filter?.field ?? fields.find(({ type }) => type !== 'time')?.name ?? '');
  const field = fields.find((other) => other.name === name) ?? fields[0];
  const [chosen, setChosen] = useState<Operator | undefined>(filter?.operator);
  if (field === undefined) return <p class="hint">The fields of the agent are not known yet.</p>;
  const known = field.name === anyField ? anyFieldOperators : typeFacts[field.type].operators;
  const operators = isMember ? known.filter((other) => other !== 'not_in') : known;
  const usual = field.name === textFieldOf(viewer.fields.value) ? 'like' : operators[0]!;
  const operator = chosen !== undefined && operators.includes(chosen) ? chosen : usual;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (takesNone(operator)) return done({ field: field.name, operator, values: [] });
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
        {!takesNone(operator) && <span class="hint">Records without a value match no such filter.</span>}
      </div>
    </form>
  );
}

interface ChipProps {
  readonly filter: Filter;
  /** Identifies the chip among all. */
  readonly place: string;
  /** Whether the chip is one of a group. */
  readonly isMember: boolean;
  /** Replaces the filter; removes it where none is given. */
  readonly replace: (filter?: Filter) => void;
}

function Chip({ filter, place, isMember, replace }: ChipProps) {
  const { viewer, screen } = usePage();
  const text = filterText(filter);
  const type = viewer.fields.value.find(({ name }) => name === filter.field)?.type ?? 'string';
  const opposite = negated(filter, type);
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
    <>
      <Menu name={`chip ${place}`} button={words} label={`Change: ${text}`}>
        <FilterEditor filter={filter} isMember={isMember} done={change} />
      </Menu>
      {(!isMember || canBeMember(opposite)) && (
        <Button
          look="bare"
          label={`Negate: ${text}`}
          title="Negate this filter"
          onClick={() => replace(opposite)}
        >
          ≠
        </Button>
      )}
      <Button look="bare" label={`Remove: ${text}`} title="Remove" onClick={() => replace()} icon="close" />
    </>
  );
}

interface ConditionProps {
  /** The filters of which one must match. */
  readonly members: readonly Filter[];
  readonly at: number;
  readonly all: readonly (readonly Filter[])[];
  readonly put: (all: readonly (readonly Filter[])[]) => void;
}

/** The menu that adds an alternative to a condition: a new filter, or another condition. */
function OrMenu({ members, at, all, put }: ConditionProps) {
  const { screen } = usePage();
  const change = (changed: readonly (readonly Filter[])[]): void => {
    screen.close();
    put(changed);
  };
  const others = all.flatMap((other, i) => (i !== at && other.every(canBeMember) ? [{ other, i }] : []));
  return (
    <Menu name={`or ${at}`} button="or…" label={`Or: add to ${groupText(members)}`}>
      <div class="form-lines">
        {others.map(({ other, i }) => (
          <Button
            key={i}
            look="outlined"
            onClick={() => change(all.with(at, [...members, ...other]).toSpliced(i, 1))}
          >
            or {groupText(other)}
          </Button>
        ))}
        <FilterEditor isMember done={(filter) => change(all.with(at, [...members, filter]))} />
      </div>
    </Menu>
  );
}

/** A chip, or several that are joined by "or". */
function Condition(props: ConditionProps) {
  const { members, at, all, put } = props;
  const isGroup = members.length > 1;
  const replace = (i: number, filter?: Filter): void =>
    put(all.with(at, filter === undefined ? members.toSpliced(i, 1) : members.with(i, filter)));
  return (
    <li>
      <div class="chip" {...(isGroup ? { role: 'group', 'aria-label': groupText(members) } : {})}>
        {members.map((filter, i) => (
          <Fragment key={`${i} ${filterText(filter)}`}>
            {i > 0 && (
              <Button
                look="bare"
                label={`or: split before ${filterText(filter)}`}
                title="Split here: both must match"
                onClick={() => put(all.toSpliced(at, 1, members.slice(0, i), members.slice(i)))}
              >
                or
              </Button>
            )}
            <Chip
              filter={filter}
              place={`${at} ${i}`}
              isMember={isGroup}
              replace={(changed) => replace(i, changed)}
            />
          </Fragment>
        ))}
        {members.every(canBeMember) && <OrMenu {...props} />}
      </div>
    </li>
  );
}

/** The chips of the filters, each with controls to change, invert, join or remove it. */
export function Chips() {
  const { viewer, screen } = usePage();
  const { filters, text, range, isContext } = viewer.view.value;
  const all = conditionList(viewer.view.value);
  const change = (conditions: Conditions): void =>
    viewer.change({ ...conditions, cursor: undefined, isContext: false });
  const add = (filter: Filter): void => {
    screen.close();
    viewer.change({ filters: gathered([...filters, filter]), cursor: undefined, isContext: false });
  };
  const clear = (): void =>
    viewer.change({ filters: [], groups: [], text: '', cursor: undefined, isContext: false });
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
        <Button look="outlined" class="range-chip" onClick={() => screen.toggle('range')} icon="clock">
          {rangeText(range, viewer.preferences.zone.value)}
        </Button>
      )}
      <ul class="chip-list">
        {all.map((members, at) => (
          <Condition
            key={groupText(members)}
            members={members}
            at={at}
            all={all}
            put={(changed) => change(conditionsOf(changed))}
          />
        ))}
      </ul>
      {(all.length > 0 || text !== '') && (
        <Button look="quiet" onClick={clear}>
          Clear all
        </Button>
      )}
    </section>
  );
}
