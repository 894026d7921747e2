/** The log of a collector: one event per call, with a message and structured facts. */
export interface CollectLog {
  info(facts: LogFacts, message: string): void;
  warn(facts: LogFacts, message: string): void;
  error(facts: LogFacts, message: string): void;
}

/** Structured data of an event. */
export type LogFacts = Readonly<Record<string, string | number | boolean | null>>;

/** Discards all events. */
export const silentLog: CollectLog = { info: () => {}, warn: () => {}, error: () => {} };
