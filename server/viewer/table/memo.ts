import { Component, type ComponentType, h } from 'preact';

/** Renders a component again only when one of its properties has changed, or a signal that it has read. */
export function memo<P extends object>(part: ComponentType<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return Object.entries(next).some(([name, value]) => this.props[name as keyof P] !== value);
    }

    override render(props: P) {
      return h(part, props);
    }
  };
}
