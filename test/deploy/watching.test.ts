import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { beforeAll, expect, it } from 'vitest';
import { ServerMetrics } from '../../server/console/server-metrics.js';
import { sampleFigures } from '../server/sample-figures.js';
import { root } from '../tidy/source-files.js';
import { itUnless, missingProgram } from '../needs.js';

const alertsPath = join(root, 'deploy/prometheus-alerts.yml');
const dashboardPath = join(root, 'deploy/grafana-dashboard.json');

/** Names of series, each with its labels. */
const series = new Map<string, Set<string>>();
let text = '';

beforeAll(async () => {
  text = await new ServerMetrics(() => Promise.resolve(sampleFigures())).text();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z_0-9]+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const names = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label]) => label!);
    series.set(name, new Set([...(series.get(name) ?? []), ...names]));
  }
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

function rules(): readonly Rule[] {
  const file = load(readFileSync(alertsPath, 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] };
  return file.groups.flatMap((group) => group.rules);
}

/** Names and labels in an expression that no series of a server has. */
function strangers(expression: string): string[] {
  const found: string[] = [];
  const asked = expression.matchAll(/\b((?:logstrata|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g);
  for (const [, name, matchers = ''] of asked) {
    const labels = series.get(name!);
    if (labels === undefined) {
      found.push(name!);
      continue;
    }
    // Prometheus adds these two.
    const known = new Set([...labels, 'instance', 'job']);
    for (const [, label] of matchers.matchAll(/([a-z_]+)(?==|!=)/g))
      if (!known.has(label!)) found.push(`${name}{${label}}`);
  }
  return found;
}

/** The labels in the text about a value, which must be among those that the expression keeps. */
const shownLabels = (words: string): string[] =>
  [...words.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}/g)].map(([, label]) => label!);

it('alerts use existing metrics', () => {
  const all = rules();
  expect(all.length).toBeGreaterThan(10);
  expect(all.flatMap(({ alert, expr }) => strangers(expr).map((name) => `${alert}: ${name}`))).toEqual([]);
  for (const { alert, expr, annotations } of all) {
    const names = [...expr.matchAll(/\b(?:logstrata|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);
    const known = new Set(['instance', ...names.flatMap((name) => [...series.get(name)!])]);
    for (const words of [annotations.summary, annotations.description])
      for (const label of shownLabels(words)) expect(known, alert).toContain(label);
  }
});

it('statuses that alerts count begin at 0, because Prometheus sees no increase in a series that begins at 1', () => {
  const expressions = rules().map(({ expr }) => expr);
  const counted = expressions.flatMap((expr) => /\{status=~?"([^"]+)"/.exec(expr)?.[1]?.split('|') ?? []);
  expect(counted).toEqual(expect.arrayContaining(['429', '500', '504']));
  for (const status of counted)
    expect(text).toContain(`\nlogstrata_query_duration_seconds_count{status="${status}"} 0\n`);
});

it('the dashboard shows existing metrics', () => {
  const { panels, templating } = JSON.parse(readFileSync(dashboardPath, 'utf8')) as {
    panels: readonly Panel[];
    templating: { list: readonly { definition?: string }[] };
  };
  const expressions = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
  );
  expect(expressions.length).toBeGreaterThan(30);
  expect(
    expressions.flatMap(({ title, expr }) => strangers(expr).map((name) => `${title}: ${name}`)),
  ).toEqual([]);
  for (const { title, expr, legendFormat } of expressions) {
    const [name] = /\b(?:logstrata|nodejs|process)_[a-z0-9_]+/.exec(expr)!;
    const known = new Set(['instance', ...series.get(name)!]);
    for (const label of shownLabels(legendFormat)) expect(known, title).toContain(label);
  }
  for (const { definition } of templating.list)
    if (definition !== undefined)
      expect(series.has(/label_values\(([a-z_]+)/.exec(definition)![1]!)).toBe(true);
});

it('unknown names are detected', () => {
  expect(strangers('rate(logstrata_records_totl{agent="a"}[5m])')).toEqual(['logstrata_records_totl']);
  expect(strangers('logstrata_records{agnet=~"a",job="b"}')).toEqual(['logstrata_records{agnet}']);
});

/** What Prometheus' own tool finds wrong. */
function promtool(args: readonly string[], input: string): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

it('metrics follow the conventions of Prometheus', () => {
  const types = new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!] as const),
  );
  const ours = [...types].filter(([name]) => name.startsWith('logstrata_'));
  expect(ours.length).toBeGreaterThan(50);
  for (const [name, type] of ours) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    expect(name).not.toMatch(/_(?:ms|milliseconds|kb|mb|percent|count)(?:_|$)/);
    expect(text).toContain(`# HELP ${name} `);
  }
  const allowed = [
    'agent',
    'status',
    'reason',
    'codec',
    'pool',
    'listener',
    'le',
    'version',
    'node',
    'transport',
  ];
  for (const [name] of ours) for (const label of series.get(name) ?? []) expect(allowed).toContain(label);
});

itUnless(missingProgram('promtool'), 'the tool of Prometheus accepts the metrics and the alerts', () => {
  expect(promtool(['check', 'metrics'], text)).toBe('');
  expect(promtool(['check', 'rules', alertsPath], '')).toBe('');
});

it('the table of the documentation page lists exactly the existing metrics', () => {
  const page = readFileSync(join(root, 'docs/operating.md'), 'utf8');
  const named = new Set([...page.matchAll(/^\| `(logstrata_[a-z0-9_]+)`/gm)].map(([, name]) => name!));
  const there = [...text.matchAll(/^# TYPE (logstrata_\S+) /gm)].map(([, name]) => name!);
  expect([...named].sort()).toEqual(there.sort());
});
