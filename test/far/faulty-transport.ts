import { FarFailure, type FarStatement, type FarTransport } from '../../engine/far/far-transport.js';

/** The fault of one statement: it is not executed, or it is executed and its answer is lost. */
export type Fault = 'refused' | 'lost';

/** A transport that fails on demand, and records the statements. */
export class FaultyTransport implements FarTransport {
  readonly asked: { readonly url: string; readonly sql: string }[] = [];
  /** Decides the fault of a statement; undefined for none. */
  fault: (url: string, sql: string) => Fault | undefined = () => undefined;
  /** Called before each statement. */
  before: (url: string, sql: string) => void | Promise<void> = () => {};

  constructor(private readonly real: FarTransport) {}

  async ask(url: string, statement: FarStatement): Promise<Uint8Array> {
    this.asked.push({ url, sql: statement.sql });
    await this.before(url, statement.sql);
    const fault = this.fault(url, statement.sql);
    if (fault === 'refused') throw new FarFailure('unreachable', url, 'made to fail');
    const answer = await this.real.ask(url, statement);
    if (fault === 'lost') throw new FarFailure('unreachable', url, 'made to lose an answer');
    return answer;
  }

  close(): Promise<void> {
    return this.real.close();
  }
}
