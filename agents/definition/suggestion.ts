import { nearName } from '../../engine/index.js';

/** Names in an error message; more would hide the sentence. */
const namesShownMax = 50;

/** ` (did you mean "x"?)` with a leading blank, or nothing. */
export function didYouMean(wrong: string, names: readonly string[]): string {
  return nearName(wrong, names);
}

/** The names, separated by commas, in the order given; those beyond the first 50 only as a count. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, namesShownMax).join(', ');
  return names.length > namesShownMax ? `${shown} and ${names.length - namesShownMax} more` : shown;
}
