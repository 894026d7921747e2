import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { fetchAlone, freePort, root, run, start, workFolder } from '../cli/process.js';

interface Target {
  readonly url: string;
  readonly url_options: { readonly params: readonly { readonly key: string; readonly value: string }[] };
  readonly root_selector: string;
  readonly columns: readonly { readonly selector: string; readonly text: string; readonly type: string }[];
}

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly Target[] }[];
}

const dashboard = JSON.parse(readFileSync(join(root, 'deploy/grafana-logs.json'), 'utf8')) as Dashboard;

type Row = Readonly<Record<string, unknown>>;

/** The rows that the Infinity data source takes from an answer: those at the root selector, which is empty or names joined by dots. */
function rowsAt(answer: unknown, selector: string): readonly Row[] {
  const names = selector === '' ? [] : selector.split('.');
  return names.reduce((value, name) => (value as Row)[name], answer) as readonly Row[];
}

const isOfType: Readonly<Record<string, (value: unknown) => boolean>> = {
  timestamp_epoch: (value) => Number.isInteger(value) && Number(value) > 1e12,
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
};

it('the Grafana panels send requests whose answers have the columns that the panels show', async () => {
  const folder = workFolder();
  await run(folder, ['load', 'app', 'data/samples/app.log']);
  const port = await freePort();
  const server = start(folder, [
    'serve',
    '--no-follow',
    '--listen',
    '127.0.0.1:0',
    '--console',
    `127.0.0.1:${port}`,
  ]);
  await server.shows('serving ');
  const variables = {
    server: `http://127.0.0.1:${port}`,
    agent: 'app',
    text: 'order',
    __from: String(Date.UTC(2026, 10, 18)),
    __to: String(Date.UTC(2026, 10, 19)),
    __interval: '30m',
  };
  const filled = (text: string): string =>
    text.replace(/\$\{(\w+)\}/g, (_, name: keyof typeof variables) => variables[name]);
  /** The rows of a panel, and its request. */
  const rowsOf = async (title: string): Promise<readonly Row[]> => {
    const [target] = dashboard.panels.find((panel) => panel.title === title)!.targets;
    const query = new URLSearchParams(
      target!.url_options.params.map(({ key, value }): [string, string] => [key, filled(value)]),
    );
    const response = await fetchAlone(`${filled(target!.url)}?${query.toString()}`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    const rows = rowsAt(await response.json(), target!.root_selector);
    for (const { selector, type } of target!.columns)
      expect(rows.filter((row) => !isOfType[type]!(row[selector]))).toEqual([]);
    return rows;
  };
  const logs = await rowsOf('The newest 500');
  const asked = 'time__since=2026-11-18&time__until=2026-11-19&*__like=order&limit=1000';
  const lines = (await (await fetchAlone(`${variables.server}/api/query/app?${asked}`)).text())
    .trimEnd()
    .split('\n');
  expect(lines.length).toBeGreaterThan(50);
  expect(logs).toEqual(lines.map((line) => JSON.parse(line) as Row));
  const buckets = await rowsOf('Records');
  expect(buckets.length).toBeGreaterThan(10);
  expect(buckets.reduce((sum, { count }) => sum + Number(count), 0)).toBe(lines.length);

  // The names under which the logs panel expects these columns.
  const { columns } = dashboard.panels.find(({ title }) => title === 'The newest 500')!.targets[0]!;
  expect(columns.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['timestamp', 'body', 'level', 'id']),
  );
});
