import { type LineShape, type SampleLine, FieldNames, sampleLine, typeOfTexts } from './field-names.js';
import { partTexts } from './line-head.js';

/** What precedes the address: nothing, or the virtual host. */
const prefixes = ['', String.raw`(?P<vhost>[^\s:]+):(?P<port>\d+) `, String.raw`(?P<vhost>\S+) `] as const;

/** Text in quotation marks; the second variant allows a quotation mark after a backslash, as Apache writes it. */
const quotedTexts = [String.raw`[^"]*`, String.raw`(?:[^"\\]|\\.)*`] as const;

/** The parts that Traefik writes after the common ones. */
const traefik = String.raw` (?P<request_count>\d+) "(?P<router>[^"]*)" "(?P<server>[^"]*)" (?P<duration_ms>\d+)ms`;

/** Limit on the parts after the common ones. */
const extrasMax = 20;

/** Variants of an additional part: its expression, and whether it includes a key, which names it. */
const extraShapes: readonly { readonly shape: string; readonly isKeyed: boolean }[] = [
  { shape: '(?P<key>[A-Za-z_][\\w.-]*)=(?P<mark>")(?P<value>QUOTED)"', isKeyed: true },
  { shape: '(?P<key>[A-Za-z_][\\w.-]*)=(?P<value>[^ "]*)', isKeyed: true },
  { shape: '"(?P<value>QUOTED)"', isKeyed: false },
  { shape: String.raw`\[(?P<value>[^\]]*)\]`, isKeyed: false },
  { shape: String.raw`(?P<value>[^ "\[]\S*)`, isKeyed: false },
];

/**
 * Finds the pattern of access logs in the formats "common" and "combined" of nginx, Apache and others, with the parts that
 * these lines have before and after it. Undefined where too few lines match.
 */
export function accessShape(lines: readonly SampleLine[]): LineShape | undefined {
  let best:
    | { readonly regex: string; readonly quoted: string; readonly lines: number; readonly combined: number }
    | undefined;
  for (const quoted of quotedTexts) {
    for (const prefix of prefixes) {
      const regex = prefix + requestPart(quoted);
      const found = partTexts(`^${regex}(?: .*)?$`, lines).lines;
      const combined = found === 0 ? 0 : partTexts(`^${regex}${agentPart(quoted)}(?: .*)?$`, lines).lines;
      if (found + combined > (best === undefined ? 0 : best.lines + best.combined))
        best = { regex, quoted, lines: found, combined };
    }
  }
  if (best === undefined || best.lines < lines.length / 3) return undefined;
  const { regex, quoted } = best;
  const isCombined = best.combined > best.lines / 2;
  const known = isCombined ? `${regex}(?:${agentPart(quoted)})?` : regex;
  const extras = extraParts(`^${isCombined ? regex + agentPart(quoted) : regex}`, quoted, lines);
  return { title: isCombined ? 'combined access log' : 'common access log', regex: `^${known}${extras}$` };
}

/** The address, time, request, status and size. An invalid request (`-`, nothing, the first bytes of TLS) has its text as `request`. */
function requestPart(quoted: string): string {
  return (
    String.raw`(?P<remote_addr>\S+) \S+ (?P<remote_user>\S+) \[(?P<time>[^\]]+)\] ` +
    String.raw`"(?:(?P<method>[A-Z]+) (?P<path>[^ "]+)(?: (?P<protocol>[^ "]+))?|(?P<request>${quoted}))" (?P<status>\d{3}) (?:(?P<bytes>\d+)|-)`
  );
}

function agentPart(quoted: string): string {
  return ` "(?P<referer>${quoted})" "(?P<user_agent>${quoted})"`;
}

/** Expression of the parts after the common ones, while all lines have them; the remainder becomes one part. */
function extraParts(regex: string, quoted: string, lines: readonly SampleLine[]): string {
  if (partTexts(`${regex}${traefik}$`, lines).lines > lines.length / 2) return `(?:${traefik})?`;
  const names = new FieldNames();
  for (const name of partTexts(regex, []).texts.keys()) names.take(name);
  let parts = '';
  for (let count = 0; count < extrasMax; count++) {
    const rests = partTexts(`${regex}${parts}(?P<rest>(?: .*)?)$`, lines).texts.get('rest')!;
    if (rests.every((text) => text === '')) return parts === '' ? '' : `(?:${parts})?`;
    const part = nextPart(rests, quoted, names);
    if (part === undefined) break;
    parts += part;
  }
  return `${parts === '' ? '' : `(?:${parts})?`}(?: (?P<${names.take('extra')}>.*))?`;
}

function nextPart(rests: readonly string[], quoted: string, names: FieldNames): string | undefined {
  const lines = rests.map(sampleLine);
  for (const { shape, isKeyed } of extraShapes) {
    const regex = shape.replace('QUOTED', () => quoted);
    const found = partTexts(`^ ${regex}(?: .*)?$`, lines);
    if (found.lines < rests.length) continue;
    const values = found.texts.get('value')!;
    const keys = new Set(found.texts.get('key'));
    if (isKeyed && keys.size > 1) continue;
    const name = isKeyed ? names.nameFor([...keys][0]!) : names.take(nameOfExtra(values));
    const named = regex
      .replace(/\(\?P<key>[^)]*\)/, () => ([...keys][0] ?? '').replaceAll('.', '\\.'))
      .replace('(?P<mark>")', '"')
      .replace('?P<value>', () => `?P<${name}>`);
    return ` ${named}`;
  }
  return undefined;
}

/** Names an additional part by its values: addresses of proxies and request times are the most frequent ones. */
function nameOfExtra(values: readonly string[]): string {
  const said = values.filter((text) => text !== '-' && text !== '');
  if (
    said.length > 0 &&
    said.every((text) => /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:]+)(?:,|$)/i.test(text))
  )
    return 'forwarded_for';
  return typeOfTexts(values) === 'float' ? 'request_time' : 'extra';
}
