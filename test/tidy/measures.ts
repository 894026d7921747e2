import ts from 'typescript';
import { parse, placeOf, sourceFiles, visit, type TextFile } from './source-files.js';

/** A number that tells how much there is of something, what it counts, and where it is. */
export interface Measure {
  readonly name: string;
  readonly definition: string;
  readonly value: number;
  /** What was counted, for whoever wants to lower the number. */
  readonly found: readonly string[];
}

const product = ['engine', 'agents', 'server'];

/** The TypeScript files of the product below folders. */
function sourcesBelow(folders: readonly string[]): TextFile[] {
  return sourceFiles(product).filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

function eachNode(file: TextFile, see: (node: ts.Node, place: string) => void): void {
  const source = parse(file);
  visit(source, (node) => see(node, placeOf(source, node)));
}

function lines(): Measure {
  const folders = ['engine/scan', 'engine/store/reading', 'engine/store/sealed'];
  const sources = sourcesBelow(folders);
  const of = folders.map(
    (folder) => `${folder}: ${linesOf(sources.filter(({ path }) => path.startsWith(`${folder}/`)))}`,
  );
  const name = 'lines from a plan to an answer';
  return { name, definition: `lines of ${folders.join(', ')}`, value: linesOf(sources), found: of };
}

function linesOf(sources: readonly TextFile[]): number {
  return sources.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
}

function taskModules(): Measure {
  const found = sourcesBelow(product)
    .filter(({ text }) => /taskIn\(import\.meta\.url/.test(text))
    .map(({ path }) => path);
  const name = 'task modules';
  return { name, definition: 'modules that threads run a job of', value: found.length, found };
}

function delegations(): Measure {
  const found: string[] = [];
  for (const source of sourcesBelow(['engine/scan', 'engine/store']))
    eachNode(source, (node, place) => {
      if (ts.isYieldExpression(node) && node.asteriskToken !== undefined) found.push(place);
    });
  const definition = '`yield*` in engine/scan and engine/store';
  return { name: 'steps that wait in generators', definition, value: found.length, found };
}

function maybePromises(): Measure {
  const found: string[] = [];
  for (const source of sourcesBelow(product))
    eachNode(source, (node, place) => {
      if (ts.isUnionTypeNode(node) && node.types.some(isPromise)) found.push(place);
    });
  const definition = 'types of the product that are a promise or something else';
  return { name: 'promises or none', definition, value: found.length, found };
}

function isPromise(type: ts.TypeNode): boolean {
  return ts.isTypeReferenceNode(type) && type.typeName.getText() === 'Promise';
}

/** The folders that a query passes, from its request to its response. */
export const wayOfQuery = ['engine/scan', 'engine/store', 'engine/workers', 'server/route', 'server/pace'];
const lending = ['engine/scan', 'engine/store/reading', 'engine/workers', 'engine/core', 'server/pace'];

function lenders(): Measure {
  const found: string[] = [];
  for (const source of sourcesBelow(lending))
    eachNode(source, (node, place) => {
      const name = ts.isClassDeclaration(node) ? (node.name?.text ?? '') : '';
      if (lends.test(name)) found.push(`${place} ${name}`);
    });
  const definition = `classes in ${lending.join(', ')} whose names end in ${lends.source.slice(1, -2)}`;
  return { name: 'classes that queue, lend or limit', definition, value: found.length, found };
}

const lends = /(Queue|Turns?|Lease|AnswerCells|Pool|Budget|Slot|Admission|Semaphore|InOrder|Threads|Space)$/;

function limits(): Measure {
  const files = sourcesBelow(['engine/core', 'server/http']).filter(({ path }) =>
    /(^|[/-])limits\.ts$/.test(path),
  );
  const found = files.flatMap(({ text }) =>
    [...text.matchAll(/^export const (\w+) ?=/gm)].map(([, name]) => name!),
  );
  const definition = `constants of ${files.map(({ path }) => path).join(', ')}`;
  return { name: 'named limits', definition, value: found.length, found };
}

function fieldTypeFiles(): Measure {
  const found: string[] = [];
  for (const source of sourcesBelow(product)) {
    let isNamed = false;
    eachNode(source, (node) => {
      const isProperty =
        ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'bool';
      isNamed ||= isProperty || (ts.isStringLiteral(node) && node.text === 'bool');
    });
    if (isNamed) found.push(source.path);
  }
  const definition =
    'files of the product that name `bool`, as each would that a further type of field has to be added to';
  return { name: 'files that name a field type', definition, value: found.length, found };
}

function clusterFiles(): Measure {
  const found = sourcesBelow(['engine'])
    .filter(({ path, text }) => !path.startsWith('engine/far/') && /clickhouse/i.test(text))
    .map(({ path }) => path);
  const definition = 'files of the engine outside engine/far with the name of ClickHouse';
  return { name: 'files that name the cluster', definition, value: found.length, found };
}

/** The measures that the source code tells. */
export function measuresOfSource(): Measure[] {
  return [lines, taskModules, delegations, maybePromises, lenders, limits, fieldTypeFiles, clusterFiles].map(
    (measure) => measure(),
  );
}
