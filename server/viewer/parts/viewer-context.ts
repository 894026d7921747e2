import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Screen } from '../state/screen.js';
import type { Viewer } from '../state/viewer.js';

/** What all components of the page use. */
export interface Page {
  readonly viewer: Viewer;
  readonly screen: Screen;
}

/** Provides the page to the components below. */
export const PageContext = createContext<Page | undefined>(undefined);

/** The page that a component belongs to. Throws outside of a `PageContext`. */
export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error('a part of the page stands outside of it');
  return page;
}
