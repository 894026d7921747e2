/** How long a browser may keep a preflight's answer; the answer changes only with the configuration. */
const preflightSeconds = 600;

/**
 * The headers that let a script on another origin read the answer (the Fetch standard, "CORS protocol"). Empty without origins, when CORS
 * is off. Caches must not give the answer for one origin to another, hence `Vary`, unless all origins get the same answer.
 */
export function corsHeaders(origins: readonly string[], origin: string | undefined): Record<string, string> {
  if (origins.length === 0) return {};
  if (origins.includes('*')) return { ...exposed, 'Access-Control-Allow-Origin': '*' };
  if (origin === undefined || !origins.includes(origin)) return { Vary: 'Origin' };
  return { ...exposed, 'Access-Control-Allow-Origin': origin, Vary: 'Origin' };
}

/** Without this header scripts see only a few common headers of an answer. */
const exposed = { 'Access-Control-Expose-Headers': 'Server-Timing, Retry-After, WWW-Authenticate' };

/** Further headers of the answer to a preflight. `*` allows all request headers except `Authorization`, which has to be named. */
export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Allow-Headers': '*, Authorization',
    'Access-Control-Max-Age': String(preflightSeconds),
  };
}

/** Adds a header name to `Vary`. */
export function withVary(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  const vary = headers['Vary'];
  return { ...headers, Vary: vary === undefined ? name : `${vary}, ${name}` };
}
