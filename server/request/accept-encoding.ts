/**
 * Whether a client accepts gzip better than, or as well as, the plain body (RFC 9110, section 12.5.3): named, or covered by `*`,
 * with a weight above 0 that is not below that of `identity`. No header means no gzip here.
 */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [coding, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    if (coding === undefined || coding === '') continue;
    weights.set(coding === 'x-gzip' ? 'gzip' : coding, weightOf(parameters));
  }
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0;
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0);
}

/** A weight that can't be read is 0: the plain body is right for everybody. */
function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  if (weight === undefined) return 1;
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0;
}
