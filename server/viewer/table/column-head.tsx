import { useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { usePage } from '../parts/viewer-context.js';
import type { LaidColumn } from './layout.js';

/** Minimum width in pixels: a narrower column would be hard to grab. */
const widthMin = 48;
/** Pixels by which the menu widens or narrows a column. */
const widthStep = 40;

function ColumnMenu({ column }: { readonly column: LaidColumn }) {
  const { viewer, screen } = usePage();
  const { name } = column.field;
  const widen = (by: number): void => viewer.setWidth(name, Math.max(widthMin, viewer.widthOf(name) + by));
  return (
    <div class="column-menu">
      <button type="button" class="button" onClick={() => viewer.moveColumn(name, -1)}>
        <Icon name="left" /> Move left
      </button>
      <button type="button" class="button" onClick={() => viewer.moveColumn(name, 1)}>
        <Icon name="right" /> Move right
      </button>
      <button type="button" class="button" onClick={() => widen(widthStep)}>
        <Icon name="plus" /> Wider
      </button>
      <button type="button" class="button" onClick={() => widen(-widthStep)}>
        <Icon name="minus" /> Narrower
      </button>
      <button
        type="button"
        class="button"
        onClick={() => {
          screen.close();
          viewer.toggleColumn(name);
        }}
      >
        <Icon name="close" /> Remove
      </button>
    </div>
  );
}

/** The head of a column. It has a menu, can be dragged to another place, and has an edge for changing the width. */
export function ColumnHead({ column }: { readonly column: LaidColumn }) {
  const { viewer } = usePage();
  const { name, description, type } = column.field;
  const whole = useRef<HTMLDivElement>(null);
  const beginWidth = (event: PointerEvent): void => {
    const edge = event.currentTarget as HTMLElement;
    const begin = whole.current?.getBoundingClientRect().width ?? 0;
    const fromX = event.clientX;
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent): void =>
      viewer.setWidth(name, Math.round(Math.max(widthMin, begin + moved.clientX - fromX)));
    const end = (): void => {
      edge.removeEventListener('pointermove', move);
      edge.removeEventListener('pointerup', end);
      edge.removeEventListener('pointercancel', end);
    };
    edge.addEventListener('pointermove', move);
    edge.addEventListener('pointerup', end);
    edge.addEventListener('pointercancel', end);
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    const moved = event.dataTransfer?.getData('text/plain') ?? '';
    if (moved !== '' && moved !== name) viewer.placeColumn(moved, name);
  };
  return (
    <div
      ref={whole}
      role="columnheader"
      class={`cell head-cell for-${column.role}`}
      title={description ?? `${name}, ${type}`}
      draggable
      onDragStart={(event) => event.dataTransfer?.setData('text/plain', name)}
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      <Menu name={`column ${name}`} button={name} label={`Column ${name}`}>
        <ColumnMenu column={column} />
      </Menu>
      <span class="width-edge" aria-hidden="true" onPointerDown={beginWidth} draggable={false} />
    </div>
  );
}
