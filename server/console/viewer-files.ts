import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { LogstrataError } from '../../engine/index.js';
import { noSniffHeaders } from '../route/problem-response.js';

/** A file of the viewer, ready to be sent. */
export interface ViewerFile {
  readonly bytes: Buffer;
  /** Undefined where it would not be shorter. */
  readonly gzip: Buffer | undefined;
  /** In quotes, as the header has it. */
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * What the page may load and do: files of this server, and requests to it. No script or style stands in the page itself, so that nothing
 * that a log line smuggles in would run, and no other site may show the page in a frame.
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const pageHeaders = { 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' };

/** The name of such a file has a hash of its content, so it never changes. */
const keptFor = 'public, max-age=31536000, immutable';

/**
 * Reads the viewer's files, by their paths on the console: a few, of some 200 kB together. `/` is the page. Throws `not_found` where the
 * viewer is not built.
 */
export function readViewerFiles(): ReadonlyMap<string, ViewerFile> {
  const folder = viewerFolder();
  const files = new Map<string, ViewerFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(folder.length).replaceAll('\\', '/').replace(/^\/?/, '/');
    files.set(name === '/index.html' ? '/' : name, readViewerFile(path, name));
  }
  return files;
}

/** Built code lies beside the viewer in `dist`; what runs from its sources finds it there, too. */
function viewerFolder(): string {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const built = join(root, 'viewer');
  const folder = existsSync(built) ? built : join(root, 'dist/viewer');
  if (existsSync(join(folder, 'index.html'))) return folder;
  throw new LogstrataError('not_found', 'the viewer is not built; run "npm run build"', { path: folder });
}

function readViewerFile(path: string, name: string): ViewerFile {
  const bytes = readFileSync(path);
  const packed = gzipSync(bytes, { level: 9 });
  const ending = extname(name);
  return {
    bytes,
    gzip: packed.length < bytes.length ? packed : undefined,
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    headers: {
      'Content-Type': types[ending] ?? 'application/octet-stream',
      'Cache-Control': name.startsWith('/assets/') ? keptFor : 'no-cache',
      Vary: 'Accept-Encoding',
      ...noSniffHeaders,
      ...(ending === '.html' ? pageHeaders : {}),
    },
  };
}
