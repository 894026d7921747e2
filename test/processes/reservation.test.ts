import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { connectToWriter } from '../../engine/store/writer/writer-link.js';
import { root, workFolder } from '../cli/process.js';

/** A writer whose only remaining work is to wait, during its commit, for the unit that holds the ordinals. */
const writer = `
const { openArchive } = await import(process.argv[1] + '/dist/engine/index.js');
const { makeSchema } = await import(process.argv[1] + '/dist/engine/core/schema.js');
const schema = makeSchema([{ name: 'n', type: 'int' }]);
const archive = await openArchive(process.cwd(), { mode: 'write', role: 'load' });
const store = await archive.agent('numbers', schema);
const session = await store.beginLoad();
await session.append({ length: 1, columns: [{ kind: 'int64', length: 1, values: BigInt64Array.of(1n), validity: null }] }, 0);
console.log('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();
console.log('committing');
const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
const { records } = await session.commit({ checkpoints: [], counters });
await archive.close();
console.log('stored ' + records);
`;

it('a writer with nothing else to do waits for the unit of another process, and then commits', async () => {
  const folder = workFolder();
  const args = ['--input-type=module', '-e', writer, root];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close');
  const running = new AbortController();
  void ended.then(() => running.abort());
  const shows = async (text: string): Promise<void> => {
    while (!output.includes(text)) {
      await once(child.stdout, 'data', { signal: running.signal });
    }
  };

  await shows('ready');
  const link = (await connectToWriter(folder))!;
  const id = await link.request('begin', { agent: 'numbers' });
  await link.request('reserve', { agent: 'numbers', given: [id, [[1, 1]]] });
  child.stdin.write('go\n');
  await shows('committing');
  // A process that nothing keeps alive ends as soon as it has nothing to do.
  for (let i = 0; i < 200; i++) {
    await link.request('heads', { agent: 'numbers' });
    await turn();
  }
  expect(output).not.toContain('stored');
  await link.request('end', { agent: 'numbers', given: [id] });
  await link.close();
  expect(await ended).toEqual([0, null]);
  expect(output).toContain('stored 1');
});
