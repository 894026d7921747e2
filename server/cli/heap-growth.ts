import { setFlagsFromString } from 'node:v8';

/**
 * Has the heaps of all threads grow by at most a half between two collections of their garbage. V8 lets a small heap quadruple. A server that
 * follows many logs replaces what it knows of each log with every commit, so that its heaps would mostly consist of garbage.
 */
export function growHeapsSlowly(): void {
  setFlagsFromString('--heap-growing-percent=50');
}
