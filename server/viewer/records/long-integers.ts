/** Integers of up to this many digits are exact in a double. */
const exactDigits = 15;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** Puts integers of many digits in quotes, so that JSON.parse does not round them. Takes linear time. */
export function withLongIntegersQuoted(json: string): string {
  const parts: string[] = [];
  let kept = 0;
  let at = 0;
  while (at < json.length) {
    const code = json.charCodeAt(at);
    if (code === 0x22) {
      for (at += 1; at < json.length && json[at] !== '"'; at += 1) if (json[at] === '\\') at += 1;
      at += 1;
      continue;
    }
    if (!isDigit(code) && code !== 0x2d) {
      at += 1;
      continue;
    }
    const begin = at;
    let isWhole = true;
    for (at += 1; at < json.length && '0123456789.eE+-'.includes(json[at]!); at += 1)
      if (!isDigit(json.charCodeAt(at))) isWhole = false;
    if (!isWhole || at - begin <= exactDigits) continue;
    parts.push(json.slice(kept, begin), '"', json.slice(begin, at), '"');
    kept = at;
  }
  return parts.length === 0 ? json : parts.join('') + json.slice(kept);
}
