import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { onTestFinished } from 'vitest';
import { compile } from './native.js';

/** What calls do: a call may be of several kinds. In step with failing-calls.c. */
export const callKinds = { write: 1, sync: 2, name: 4, open: 8, create: 16, remove: 32 } as const;
export type CallKind = keyof typeof callKinds;

const actions = { none: 0, fail: 1, kill: 2, killInWrite: 3 } as const;

/** What the library and the test share, as 64-bit numbers in this order. */
const fields = ['calls', 'hits', 'kinds', 'from', 'until', 'action', 'error'] as const;
type Field = (typeof fields)[number];

/** What is to happen to calls of some kinds. */
export type Fault =
  | { readonly action: 'kill' | 'killInWrite' }
  | { readonly action: 'fail'; readonly error: 'EIO' | 'ENOSPC' | 'EMFILE' };

/** From which call on, counted from 1, and for how many. */
export interface FaultPlace {
  readonly at: number;
  readonly count: number;
}

/** Every call that something can go wrong at and that changes what the disk holds. */
export const changingKinds: readonly CallKind[] = ['write', 'sync', 'name', 'create', 'remove'];

let library: string | undefined;

/** Has calls of a service fail that concern one folder. Nothing happens, and nothing is counted, before it is told. */
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

  /** For the service that is to be started in the folder. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: library!,
      LOGSTRATA_FAULT_FOLDER: this.folder,
      LOGSTRATA_FAULT_CONTROL: this.path,
      // What goes through a ring of the kernel's is no call.
      UV_USE_IO_URING: '0',
    };
  }

  /** Counts calls of these kinds from now on, and nothing happens to them. */
  count(kinds: readonly CallKind[]): void {
    this.set('action', actions.none);
    this.set('calls', 0);
    this.set('hits', 0);
    this.set(
      'kinds',
      kinds.reduce((bits, kind) => bits | callKinds[kind], 0),
    );
  }

  /** Counts calls of these kinds from now on, and has the fault happen to those at the place. */
  plan(kinds: readonly CallKind[], fault: Fault, { at, count }: FaultPlace): void {
    this.count(kinds);
    this.set('from', at);
    this.set('until', at + count);
    this.set('error', fault.action === 'fail' ? constants.errno[fault.error] : 0);
    this.set('action', actions[fault.action]);
  }

  /** Nothing goes wrong any more. */
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
