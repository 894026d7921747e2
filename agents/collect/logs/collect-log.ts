/** Where a collector says what happens to it: one event a call, with its facts beside the sentence. */
export interface CollectLog {
  info(facts: LogFacts, message: string): void;
  warn(facts: LogFacts, message: string): void;
  error(facts: LogFacts, message: string): void;
}

export type LogFacts = Readonly<Record<string, string | number | boolean | null>>;

/** Says nothing. */
export const silentLog: CollectLog = { info: () => {}, warn: () => {}, error: () => {} };
