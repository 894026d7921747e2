import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { onTestFinished } from 'vitest';
import { compile } from './native.js';

/** Kinds of calls; a call may be of several kinds. Must agree with failing-calls.c. */
export const callKinds = { write: 1, sync: 2, name: 4, open: 8, create: 16, remove: 32 } as const;
export type CallKind = keyof typeof callKinds;

const actions = { none: 0, fail: 1, kill: 2, killInWrite: 3 } as const;

/** Values that the library and the test share, as 64-bit numbers in this order. */
const fields = ['calls', 'hits', 'kinds', 'from', 'until', 'action', 'error'] as const;
type Field = (typeof fields)[number];

/** The fault for calls of some kinds. */
export type Fault =
  | { readonly action: 'kill' | 'killInWrite' }
  | { readonly action: 'fail'; readonly error: 'EIO' | 'ENOSPC' | 'EMFILE' };

/** The first call that fails, counted from 1, and the number of calls. */
export interface FaultPlace {
  readonly at: number;
  readonly count: number;
}

/** Every call that can fail and that changes the disk. */
export const changingKinds: readonly CallKind[] = ['write', 'sync', 'name', 'create', 'remove'];

let library: string | undefined;

/** Makes calls of a service fail that concern one folder. Until it is told to, no call fails and none is counted. */
export class FailingCalls {
  private readonly control: number;
  private readonly path: string;

  constructor(private readonly folder: string) {
    library ??= compile('failing-calls.c', 'library');
    this.path = `${folder}.calls`;
    writeFileSync(this.path, Buffer.alloc(fields.length * 8));
    this.control = openSync(this.path, 'r+');
    onTestFinished(() => {
      closeSync(this.control);
      rmSync(this.path);
    });
  }

  /** The environment of the service to start in the folder. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: library!,
      LOGSTRATA_FAULT_FOLDER: this.folder,
      LOGSTRATA_FAULT_CONTROL: this.path,
      // Operations through io_uring are not calls.
      UV_USE_IO_URING: '0',
    };
  }

  /** Counts calls of these kinds from now on, without faults. */
  count(kinds: readonly CallKind[]): void {
    this.set('action', actions.none);
    this.set('calls', 0);
    this.set('hits', 0);
    this.set(
      'kinds',
      kinds.reduce((bits, kind) => bits | callKinds[kind], 0),
    );
  }

  /** Counts calls of these kinds from now on, and makes the chosen ones fail. */
  plan(kinds: readonly CallKind[], fault: Fault, { at, count }: FaultPlace): void {
    this.count(kinds);
    this.set('from', at);
    this.set('until', at + count);
    this.set('error', fault.action === 'fail' ? constants.errno[fault.error] : 0);
    this.set('action', actions[fault.action]);
  }

  /** Ends all faults. */
  end(): void {
    this.set('action', actions.none);
  }

  get calls(): number {
    return this.get('calls');
  }

  get hits(): number {
    return this.get('hits');
  }

  private set(field: Field, value: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    writeSync(this.control, bytes, 0, 8, fields.indexOf(field) * 8);
  }

  private get(field: Field): number {
    const bytes = Buffer.alloc(8);
    readSync(this.control, bytes, 0, 8, fields.indexOf(field) * 8);
    return Number(bytes.readBigUInt64LE());
  }
}
