import { arraysOf, type Column } from '../../columns/column.js';
import { columnLayout, type ColumnLayout } from '../../columns/column-layout.js';
import { sharedMemory } from '../../memory/shared-memory.js';

const layouts = new WeakMap<Column, ColumnLayout | null>();

/** The layout by which other threads find a column; null where it is not in the kernels' memory, so that it would have to be copied. */
export function sharedLayout(column: Column): ColumnLayout | null {
  let layout = layouts.get(column);
  if (layout === undefined) {
    const memory = sharedMemory();
    layout = arraysOf(column).every((array) => memory.holds(array)) ? columnLayout(column) : null;
    layouts.set(column, layout);
  }
  return layout;
}
