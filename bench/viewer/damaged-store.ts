import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Overwrites a part of each sealed segment of an agent, like a failing disk. */
export function damageStore(folder: string, agent: string): void {
  const store = join(folder, 'data/store', agent);
  const names = readdirSync(store, { recursive: true, encoding: 'utf8' });
  const sealed = names.filter((name) => name.endsWith('.parquet'));
  if (sealed.length === 0) throw new Error(`${agent} has no sealed segment`);
  for (const name of sealed) {
    const bytes = readFileSync(join(store, name));
    bytes.fill(0x5a, bytes.length >> 3, bytes.length >> 1);
    writeFileSync(join(store, name), bytes);
  }
}
