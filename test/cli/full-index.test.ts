import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run } from './here.js';
import { workFolder } from './process.js';

it('`index: full` is shown by check, stats and --explain, and compact applies it to stored records', async () => {
  const folder = workFolder();
  const define = (index: string): void =>
    writeFileSync(
      join(folder, 'agents/app.yaml'),
      `fields:\n  - name: time\n    type: time\n  - name: message\n${index}file:\n  path: '${folder}/app.log'\n  format: json\n`,
    );
  mkdirSync(join(folder, 'agents'), { recursive: true });
  define('');
  const lines = Array.from({ length: 3000 }, (_, i) =>
    JSON.stringify({
      time: 1_795_000_000_000 + i,
      message: `request ${(i * 2654435761) % 4294967296} is done`,
    }),
  );
  writeFileSync(join(folder, 'app.log'), `${lines.join('\n')}\n`);
  expect(await run(folder, ['load', 'app', 'app.log'])).toMatchObject({ code: 0 });
  define('    index: full\n');
  const checked = await run(folder, ['check', 'app']);
  expect(checked.stdout).toMatch(/^ *message +string .*full *$/m);
  const asked = await run(folder, ['query', 'app', 'message__like=request 77', '--explain']);
  expect(asked.stderr).toContain('message like "request 77" (index: full)');
  // A server or a load adopts the fields of the file, and so does compact.
  const compacted = await run(folder, ['compact', 'app']);
  expect(compacted).toMatchObject({ code: 0 });
  const stats = await run(folder, ['stats', 'app']);
  expect(stats.stdout).toContain('message string (index: full)');
  expect(stats.stdout).not.toContain('outdated filters');
});
