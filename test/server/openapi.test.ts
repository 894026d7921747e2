import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { OpenAPIClientAxios, type Document } from 'openapi-client-axios';
import { describe, expect, it } from 'vitest';
import { openApiPage } from '../../server/cli/build-manual.js';
import { openApi } from '../../server/console/openapi.js';
import { makeRoutes } from '../../server/console/routes.js';
import { fieldTypes, groupNames, operatorsOf } from '../../agents/definition/filter-operators.js';
import { run } from '../cli/here.js';
import { recordsOf, root, start, workFolder } from '../cli/process.js';
import { addressesOf, anyPorts } from '../cli/serving.js';

interface Described {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, { readonly get: { readonly parameters: readonly Parameter[] } }>>;
}

interface Parameter {
  readonly name?: string;
  readonly description?: string;
  readonly schema?: { readonly description?: string; readonly propertyNames?: { readonly pattern: string } };
}

const page = JSON.parse(openApiPage()) as Described;

describe('the OpenAPI document', () => {
  it('in docs/ is what "npm run build:manual" writes', () => {
    expect(readFileSync(join(root, 'docs/openapi.json'), 'utf8')).toBe(openApiPage());
  });

  it('is valid, also as the console gives it', async () => {
    for (const document of [page, openApi('1', '/')]) {
      const validator = new Validator();
      expect(await validator.validate(structuredClone(document) as never)).toEqual({ valid: true });
      expect(validator.version).toBe('3.1');
    }
    const broken = { ...page, paths: { '/api/agents': { get: { responses: { 200: {} } } } } };
    expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
  });

  it('has every route of the console but those for readers of the same version', () => {
    const routes = Object.keys(
      makeRoutes({ version: '1', agents: new Map(), route: {}, counts: {} } as never),
    );
    const paths = Object.keys(page.paths).map((path) => path.replace('{agent_name}', ''));
    expect(paths.sort()).toEqual([...routes, '/livez', '/readyz'].sort());
  });

  it('explains every parameter, and every operator of each type', () => {
    for (const { get } of Object.values(page.paths))
      for (const { name, description, schema } of get.parameters)
        if (name !== undefined) expect(description ?? schema?.description, name).toBeTruthy();
    for (const path of ['/api/query/{agent_name}', '/api/count/{agent_name}']) {
      const { parameters } = page.paths[path]!.get;
      const names = parameters.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining([...groupNames]));
      const filters = parameters.find(({ name }) => name === 'filters')!;
      const pattern = new RegExp(filters.schema!.propertyNames!.pattern);
      for (const type of fieldTypes) {
        expect(filters.description).toContain(`- \`${type}\`: ${operatorsOf(type).join(', ')}`);
        for (const operator of operatorsOf(type)) {
          expect(filters.description).toMatch(new RegExp(`^\`${operator}\`: .*(?<!: ${operator})$`, 'm'));
          expect(`a_field__${operator}`).toMatch(pattern);
        }
      }
      expect('status__is').not.toMatch(pattern);
    }
  });

  it('makes a client that reads pages and counts', async () => {
    const folder = workFolder();
    await run(folder, ['load', 'nginx', 'data/samples/nginx.log']);
    const server = start(folder, ['serve', '--no-follow', ...anyPorts]);
    const { operators, route } = await addressesOf(server);
    const definition = (await (await fetch(`${operators}/openapi.json`)).json()) as Document;
    const words = ['status__gte=500', 'path__prefix=/api/'];
    const expected = recordsOf((await run(folder, ['query', 'nginx', '-n', '3', ...words])).stdout);
    // This client writes an object as the document says, but its types know only parameters that are not objects.
    const filters = { status__gte: 500, path__prefix: '/api/' } as never;
    for (const url of [operators, route]) {
      const maker = new OpenAPIClientAxios({ definition, withServer: { url } });
      const client = await maker.init();
      const { url: asked } = maker.getRequestConfigForOperation('queryLogs', [
        { agent_name: 'nginx', limit: 3, filters },
      ]);
      expect(recordsOf(await (await fetch(asked)).text())).toEqual(expected);
      const given = { agent_name: 'nginx', limit: 3, status__gte: 500, path__prefix: '/api/' };
      const { data, headers } = await client['queryLogs']!(given);
      expect(headers['content-type']).toBe('application/x-ndjson');
      expect(recordsOf(String(data))).toEqual(expected);
    }
    const axiosConfigDefaults = {
      baseURL: operators,
      paramsSerializer: { indexes: null },
      validateStatus: null,
    };
    const client = await new OpenAPIClientAxios({
      definition,
      withServer: { url: operators },
      axiosConfigDefaults,
    }).init();
    const count = await client['countLogs']!({ agent_name: 'nginx', by: ['time:1d', 'status'], top: 2 });
    expect(count.data).toMatchObject({
      agent: 'nginx',
      time: { field: 'time' },
      values: { field: 'status' },
    });
    const wrong = await client['queryLogs']!({ agent_name: 'nginx', limit: 'x' });
    expect(wrong.data).toMatchObject({ status: 400, parameter: 'limit' });
  });
});
