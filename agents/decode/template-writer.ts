import { type ColumnBuilder, type StringColumnBuilder, valueBytesMax } from '../../engine/index.js';
import { Kind, ParsedLine } from './parsed-line.js';
import type { Template } from '../templates/template.js';
import { TemplateOverrun, templateStepsMax } from '../templates/template-work.js';
import { type FieldWriter, stringColumn, type UndatedTimes, type FieldCounters } from './value-writer.js';

const tooManyStepsReason = `takes more than ${templateStepsMax} steps in the templates of its fields`;

/** Renders a template over the parsed fields of one line. */
class Renderer {
  /** The text of the last `render`. */
  text = '';
  #line: ParsedLine | null = null;
  readonly #places: ReadonlyMap<string, number>;
  readonly #get = (name: string): string | undefined => this.#textOf(name);

  constructor(
    private readonly field: string,
    private readonly template: Template,
    placeOf: (name: string) => number,
    private readonly counters: FieldCounters,
  ) {
    this.#places = new Map(template.fields.map((name) => [name, placeOf(name)]));
  }

  /** Returns null, or the reason to reject the line. */
  render(line: ParsedLine): string | null {
    this.#line = line;
    line.replacedInTexts = 0;
    try {
      this.text = this.template.render(this.#get, line.templateWork);
    } catch (error) {
      if (error instanceof TemplateOverrun) return tooManyStepsReason;
      throw error;
    }
    if (line.replacedInTexts > 0) this.counters.addReplaced(line.replacedInTexts);
    // A UTF-16 unit takes at most three bytes in UTF-8.
    if (this.text.length * 3 <= valueBytesMax) return null;
    const bytes = Buffer.byteLength(this.text);
    if (bytes <= valueBytesMax) return null;
    return `the template of field "${this.field}" gives ${bytes} bytes, more than ${valueBytesMax}`;
  }

  #textOf(name: string): string | undefined {
    const place = this.#places.get(name) ?? -1;
    return place < 0 ? undefined : this.#line!.text(place);
  }
}

/** Writes a `string` field with a template. */
export class StringTemplateWriter implements FieldWriter {
  readonly #renderer: Renderer;
  #column: StringColumnBuilder | null = null;

  constructor(field: string, template: Template, placeOf: (name: string) => number, counters: FieldCounters) {
    this.#renderer = new Renderer(field, template, placeOf, counters);
  }

  bind(column: ColumnBuilder): void {
    this.#column = stringColumn(column);
  }

  write(line: ParsedLine): string | null {
    const problem = this.#renderer.render(line);
    if (problem === null) this.#column!.setString(this.#renderer.text);
    return problem;
  }
}

const encoder = new TextEncoder();

/** Writes a field of another type with a template: the rendered text is read like a parsed field; an empty one is null. */
export class TemplateWriter implements FieldWriter {
  readonly #renderer: Renderer;
  readonly #rendered = new ParsedLine(1);

  /** @param inner reads the parsed field 0 of the rendered line */
  constructor(
    field: string,
    template: Template,
    placeOf: (name: string) => number,
    private readonly inner: FieldWriter,
    counters: FieldCounters,
  ) {
    this.#renderer = new Renderer(field, template, placeOf, counters);
  }

  bind(column: ColumnBuilder): void {
    this.inner.bind(column);
  }

  get undated(): UndatedTimes | undefined {
    return this.inner.undated;
  }

  write(line: ParsedLine): string | null {
    const problem = this.#renderer.render(line);
    if (problem !== null) return problem;
    const bytes = encoder.encode(this.#renderer.text);
    this.#rendered.set(0, bytes.length === 0 ? Kind.absent : Kind.text, bytes, 0, bytes.length);
    return this.inner.write(this.#rendered);
  }
}
