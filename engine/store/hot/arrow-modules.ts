import type * as enums from 'apache-arrow/enum';
import type * as messages from 'apache-arrow/ipc/metadata/message';
import type * as schemas from 'apache-arrow/schema';
import type * as types from 'apache-arrow/type';
import { createRequire } from 'node:module';

/** The parts of Arrow that are used. */
export interface ArrowModules {
  readonly enums: typeof enums;
  readonly messages: typeof messages;
  readonly schemas: typeof schemas;
  readonly types: typeof types;
}

const require = createRequire(import.meta.url);

let loaded: ArrowModules | undefined;

/**
 * Loads Arrow when a batch is first written or read. It consists of sixty modules, which a command that reads only sealed segments need not
 * load. Code that must not be delayed later calls this function beforehand.
 */
export function arrowModules(): ArrowModules {
  loaded ??= {
    enums: require('apache-arrow/enum') as ArrowModules['enums'],
    messages: require('apache-arrow/ipc/metadata/message') as ArrowModules['messages'],
    schemas: require('apache-arrow/schema') as ArrowModules['schemas'],
    types: require('apache-arrow/type') as ArrowModules['types'],
  };
  return loaded;
}
