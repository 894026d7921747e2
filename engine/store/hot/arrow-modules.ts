import type * as enums from 'apache-arrow/enum';
import type * as messages from 'apache-arrow/ipc/metadata/message';
import type * as schemas from 'apache-arrow/schema';
import type * as types from 'apache-arrow/type';
import { createRequire } from 'node:module';

/** What we use of Arrow. */
export interface ArrowModules {
  readonly enums: typeof enums;
  readonly messages: typeof messages;
  readonly schemas: typeof schemas;
  readonly types: typeof types;
}

const require = createRequire(import.meta.url);

let loaded: ArrowModules | undefined;

/**
 * Arrow, loaded when a batch is written or read for the first time: sixty modules, which a command that reads sealed segments alone
 * need not wait for. Code that must not wait later calls this function beforehand.
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
