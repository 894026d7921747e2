import type { Field } from '../query/field.js';
import { toggleUnwanted, toggleWanted } from '../query/filter.js';
import { Icon } from './icon.js';
import { usePage } from './viewer-context.js';

/** Toggles a value of a field among the wanted or the unwanted values. A second call undoes the first. */
export interface ValueToggles {
  readonly want: () => void;
  readonly leaveOut: () => void;
}

/** The toggles for a value. The open record stays open; the context view ends, as it has no filters. */
export function useValueToggles(field: Field, value: string): ValueToggles {
  const { viewer } = usePage();
  const change = (toggle: typeof toggleWanted) => (): void =>
    viewer.change({ filters: toggle(viewer.view.peek().filters, field, value), isContext: false });
  return { want: change(toggleWanted), leaveOut: change(toggleUnwanted) };
}

/** A button that shows a field as a column, or removes the column. */
export function ColumnToggle({ name }: { readonly name: string }) {
  const { viewer } = usePage();
  const isColumn = viewer.columns.value.some((column) => column.name === name);
  return (
    <button
      type="button"
      class={`button is-bare ${isColumn ? 'is-on' : ''}`}
      aria-pressed={isColumn}
      aria-label={`Column ${name}`}
      title={isColumn ? 'Hide the column' : 'Show as a column'}
      onClick={() => viewer.toggleColumn(name)}
    >
      <Icon name="column" />
    </button>
  );
}

interface PaneHeadProps {
  /** What is closed, such as `the fields`. */
  readonly what: string;
  readonly shortcut: string;
  readonly close: () => void;
}

/** A button that closes a pane beside the table. */
export function CloseButton({ what, shortcut, close }: PaneHeadProps) {
  return (
    <button
      type="button"
      class="button is-bare"
      aria-label={`Close ${what}`}
      title={`Close (${shortcut})`}
      onClick={close}
    >
      <Icon name="close" />
    </button>
  );
}
