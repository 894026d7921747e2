/** Bounds of the checks of access tokens, each with its reason. A unit comes last in the name. */

/**
 * Tokens of a data folder, revoked ones included: enough for one per program of a large company. All are read at the start and at
 * SIGHUP.
 */
export const tokensMax = 1000;

/** Agents that one token names. A client that needs more is given a token for all agents. */
export const agentsOfTokenMax = 100;

/** Characters of a token's name: it is one line of `token list`. */
export const tokenNameCharactersMax = 100;

/** Bytes of a token's file. The largest possible file has 14 KiB. */
export const tokenFileBytesMax = 32 * 1024;

/** Characters of an `Authorization` header; a longer one is treated as if it held no token. A token has 62. */
export const authorizationCharactersMax = 256;

/** Clients whose wrong tokens are counted. For one more, the client whose last failure is the oldest is forgotten. */
export const failingClientsMax = 4096;

/** Milliseconds without a wrong token after which a client's count begins again at 0. */
export const failuresForgottenMs = 10 * 60_000;

/** Wrong tokens of a client that are refused without a delay: a person may have pasted the wrong one. */
export const failuresAtOnce = 3;

/** Delay in milliseconds of the next refusal. It doubles with each further one, up to the maximum. */
export const failureDelayMs = 100;
export const failureDelayMsMax = 2000;

/**
 * Refusals that are delayed at the same time, of all clients and of one. Each holds a timer and a connection; one more gets a 429
 * at once.
 */
export const slowedAnswersMax = 256;
export const slowedAnswersOfClientMax = 8;
