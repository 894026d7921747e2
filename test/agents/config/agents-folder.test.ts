import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readAgents } from '../../../agents/definition/agent-file.js';
import { formatProblem } from '../../../agents/definition/config-error.js';
import { temporaryFolder } from '../load/temporary.js';

describe('a folder of agents', () => {
  it('refuses logs in the data folder, also through a symbolic link, and where they do not exist yet', async () => {
    const place = await temporaryFolder();
    const store = join(place, 'store');
    mkdirSync(join(store, 'app/rejected'), { recursive: true });
    symlinkSync(store, join(place, 'linked-store'));
    symlinkSync(join(store, 'app/rejected'), join(place, 'logs'));
    mkdirSync(join(place, 'store-logs'));
    const agents = join(place, 'agents');
    mkdirSync(agents);
    const write = (name: string, path: string): void =>
      writeFileSync(
        join(agents, name),
        `fields: [{name: a}]\nfile:\n  format: json\n  path: '${path}/.*\\.jsonl'\n`,
      );
    write('own.yaml', '../store/app/rejected');
    write('whole.yaml', '../store');
    write('linked.yaml', '../logs');
    write('later.yaml', '../store/later/rejected');
    write('beside.yaml', '../store-logs');
    for (const dataFolder of [store, join(place, 'linked-store')]) {
      const { agents: found, problems } = readAgents(agents, dataFolder);
      expect(found.map(({ name }) => name)).toEqual(['beside']);
      expect(problems.map(formatProblem)).toEqual(
        ['later', 'linked', 'own', 'whole'].map(
          (name) =>
            expect.stringMatching(
              `/${name}.yaml:4:9: path is inside the data folder ${dataFolder}: `,
            ) as string,
        ),
      );
    }
    expect(readAgents(agents, join(place, 'elsewhere')).problems).toEqual([]);
  });

  it('is read if an agent file is a named pipe, and that is reported', async () => {
    const place = await temporaryFolder();
    writeFileSync(
      join(place, 'good.yaml'),
      'fields: [{name: a}]\nfile: { path: /var/log/x, format: json }\n',
    );
    expect(spawnSync('mkfifo', [join(place, 'odd.yaml')]).status).toBe(0);
    const { agents, problems } = readAgents(place);
    expect(agents.map(({ name }) => name)).toEqual(['good']);
    expect(problems.map(formatProblem)).toEqual([
      expect.stringMatching(/odd\.yaml:1:1: it is a named pipe or a device/),
    ]);
  });
});
