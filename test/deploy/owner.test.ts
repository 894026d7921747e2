import { chownSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { run, workFolder } from '../cli/process.js';
import { itUnless, notRoot } from '../needs.js';

/** Neither root nor the user who runs the tests. */
const owner = { uid: 61_234, gid: 61_235 };

itUnless(
  notRoot,
  'files that root creates in a data folder of another user belong to that user',
  async () => {
    const folder = workFolder();
    const data = join(folder, 'archive');
    mkdirSync(data);
    chownSync(data, owner.uid, owner.gid);
    const on = ['--data', data];
    expect(await run(folder, ['load', 'nginx', 'data/samples/nginx.log', ...on])).toMatchObject({ code: 0 });
    const lines = '{"time":"2026-01-01T00:00:00Z","level":"info"}\nno JSON\n';
    expect(await run(folder, ['load', 'app', '-', ...on], lines)).toMatchObject({ code: 0 });
    expect(await run(folder, ['compact', 'nginx', ...on])).toMatchObject({ code: 0 });
    const entries = readdirSync(data, { recursive: true, encoding: 'utf8' });
    expect(entries.filter((entry) => entry.endsWith('.parquet')).length).toBeGreaterThan(0);
    const others = entries.filter((entry) => {
      const { uid, gid } = lstatSync(join(data, entry));
      return uid !== owner.uid || gid !== owner.gid;
    });
    expect(others).toEqual([]);
  },
);
