import { describe, expect, it } from 'vitest';
import { jsonFormats, tableFormats, textFormats, wrappedFormats } from './named-formats.js';
import { recognised, recordsOf } from './recognised.js';

const formats = { ...jsonFormats, ...textFormats, ...wrappedFormats, ...tableFormats };

describe('a named format', () => {
  it.each(Object.keys(formats))('is recognised with every value of every record: %s', (name) => {
    const { text, title, records, first, others } = formats[name]!;
    const trial = recognised(text);
    expect([trial.candidate.title, trial.records, trial.unreadableValues]).toEqual([title, records, 0]);
    expect(recordsOf(trial)).toEqual([first, ...others.map((other) => ({ ...first, ...other }))]);
  });
});
