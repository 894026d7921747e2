/** Bounds of what is kept of tokens and of those who have none, each with its reason. Units come last in the names. */

/** Tokens of a data folder, revoked ones included: one for each of a large company's programs. All are read at the start and at SIGHUP. */
export const tokensMax = 1000;

/** Agents that one token names. Who needs more takes a token for all of them. */
export const agentsOfTokenMax = 100;

/** Characters of what a token is called: a line of `token list`. */
export const tokenNameCharactersMax = 100;

/** The file of a token: that of the longest one has 14 KiB. */
export const tokenFileBytesMax = 32 * 1024;

/** Characters of an `Authorization` header that are looked at. A token has 62. */
export const authorizationCharactersMax = 256;

/** Clients that are remembered for wrong tokens. For one more the one is forgotten that failed the longest time ago. */
export const failingClientsMax = 4096;

/** A client that has sent no wrong token for this long begins anew. */
export const failuresForgottenMs = 10 * 60_000;

/** Wrong tokens of a client that are answered at once: somebody pastes the wrong one. */
export const failuresAtOnce = 3;

/** How long the answer to the next one waits, doubled with each that follows, up to the longest. */
export const failureDelayMs = 100;
export const failureDelayMsMax = 2000;

/** Answers that wait at once, of all clients and of one. Each holds a timer and a connection; more are refused at once, with 429. */
export const slowedAnswersMax = 256;
export const slowedAnswersOfClientMax = 8;
