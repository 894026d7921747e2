import { FirstRequests, firstPaths } from './state/first-requests.js';
import { readAddress } from './state/view.js';
import { BrowserStore, readToken } from './state/browser-store.js';

const first = new FirstRequests();
first.send(firstPaths(readAddress(location.hash)), readToken(new BrowserStore(() => sessionStorage)));
const { start } = await import('./start.js');
await start(first);
