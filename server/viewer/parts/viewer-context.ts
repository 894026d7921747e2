import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Screen } from '../state/screen.js';
import type { Viewer } from '../state/viewer.js';

/** What all parts of the page work on. */
export interface Page {
  readonly viewer: Viewer;
  readonly screen: Screen;
}

/** Holds it for the parts below. */
export const PageContext = createContext<Page | undefined>(undefined);

/** The page that a part belongs to. */
export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error('a part of the page stands outside of it');
  return page;
}
