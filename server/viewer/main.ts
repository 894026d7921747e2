import { FirstRequests, firstPaths } from './api/first-requests.js';
import { readAddress } from './query/address.js';
import { BrowserStore } from './state/browser-store.js';
import { readToken } from './state/token.js';

const first = new FirstRequests();
first.send(firstPaths(readAddress(location.hash)), readToken(new BrowserStore(() => sessionStorage)));
const { start } = await import('./start.js');
await start(first);
