import { defaultConfig } from '../../agents/definition/config.js';
import { readFileSync } from 'node:fs';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { newScanStats } from '../../engine/scan/answer.js';
import { answerBytesMax } from '../../engine/core/limits.js';
import { makeSchema } from '../../engine/core/schema.js';
import { startServer } from '../../server/route/server.js';
import type { TransportChoice } from '../../server/route/server-options.js';
import type { Scan } from '../../engine/scan/scan.js';

/**
 * Our server over a store that answers at once from memory, so that only the HTTP side is measured. Usage: `memory-server.js TRANSPORT
 * FILE`; prints its address.
 */
function memoryStore(body: Uint8Array): AgentStore {
  async function* lines(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < body.length; at += answerBytesMax) yield body.subarray(at, at + answerBytesMax);
  }
  const store = {
    name: 'web',
    schema: makeSchema([
      { name: 'time', type: 'time' },
      { name: 'status', type: 'int' },
      { name: 'message', type: 'string' },
    ]),
    scan: (): Promise<Scan> => Promise.resolve({ lines: lines(), stats: newScanStats() }),
  };
  return store as unknown as AgentStore;
}

const [transport, path = ''] = process.argv.slice(2);
const store = memoryStore(readFileSync(path));
const server = await startServer({
  ...defaultConfig.server,
  listen: { host: '127.0.0.1', port: 0 },
  transport: transport as TransportChoice,
  lookup: (agent) => (agent === 'web' ? store : undefined),
  limitMax: 10_000_000,
  queriesMax: 1000,
  clientRateMin: 0,
  now: Date.now,
  log: (message) => process.stderr.write(`${message}\n`),
});
process.stdout.write(`serving  ${server.address}/  (${server.transport})\n`);
process.once('SIGTERM', () => void server.close({ timeoutMs: 0 }).then(() => process.exit(0)));
