/** How long a browser may keep a preflight's answer; the answer changes only with the configuration. */
const preflightSeconds = 600;

/**
 * The headers that let a browser's script on another origin read the answer (the Fetch standard, "CORS protocol"). Empty when
 * CORS is off, with no origins. The answer to one origin must not be kept for another: hence `Vary`, except where everybody gets the same.
 */
export function corsHeaders(origins: readonly string[], origin: string | undefined): Record<string, string> {
  if (origins.length === 0) return {};
  if (origins.includes('*')) return { ...exposed, 'Access-Control-Allow-Origin': '*' };
  if (origin === undefined || !origins.includes(origin)) return { Vary: 'Origin' };
  return { ...exposed, 'Access-Control-Allow-Origin': origin, Vary: 'Origin' };
}

/** Scripts don't see other headers than the common ones without this. */
const exposed = { 'Access-Control-Expose-Headers': 'Server-Timing, Retry-After, WWW-Authenticate' };

/** What a preflight is answered besides. `*` are all headers but the one with a token, which has to be named. */
export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Allow-Headers': '*, Authorization',
    'Access-Control-Max-Age': String(preflightSeconds),
  };
}

/** One `Vary` out of several headers' reasons. */
export function withVary(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  const vary = headers['Vary'];
  return { ...headers, Vary: vary === undefined ? name : `${vary}, ${name}` };
}
