import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { LogstrataError } from '../../engine/index.js';
import { noSniffHeaders } from '../route/http-answer.js';
import type { TransportRequest, TransportResponse } from '../http/transport.js';
import { acceptsGzip } from '../http/query-request.js';
import { nothingThere, type PageRoute } from './console-router.js';

/** A file of the viewer as it is sent. */
interface ViewerFile {
  readonly bytes: Buffer;
  /** Undefined where compression would not make it smaller. */
  readonly gzip: Buffer | undefined;
  /** Entity tag with its quotes, as in the header. */
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
 * The Content-Security-Policy of the page: it may only load files of this server and send requests to this server. The page has no inline
 * scripts or styles, so a script that a log line injects does not run, and no other site may show the page in a frame.
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const pageHeaders = { 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' };

/** For files whose name contains a hash of the content, which therefore never change. */
const keptFor = 'public, max-age=31536000, immutable';

/**
 * Reads the viewer's files, some 200 kB in total, by their paths on the console. `/` is the page. Throws `not_found` where the viewer is
 * not built.
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

/** The built viewer: next to the built server in `dist`, or in `dist` of the project where the server runs from its sources. */
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

/** `GET /` and the files of the page: the viewer. The files are read at the first request. */
export class ViewerRoute implements PageRoute {
  /** The files reveal nothing about the logs, and the page must load to ask the user for a token. */
  readonly rights = 'none';
  #files: ReadonlyMap<string, ViewerFile> | undefined;

  hasFile(path: string): boolean {
    return path === '/' || path.startsWith('/assets/');
  }

  answer(request: TransportRequest, response: TransportResponse): Promise<void> {
    this.#files ??= readViewerFiles();
    const file = this.#files.get(request.rawPath);
    if (file === undefined) throw nothingThere();
    const isGzip = file.gzip !== undefined && acceptsGzip(request.header('accept-encoding'));
    // The compressed form needs a tag of its own: it is a different representation of the file.
    const etag = isGzip ? `${file.etag.slice(0, -1)}-gzip"` : file.etag;
    const headers = { ...file.headers, ETag: etag };
    if (isKnown(request.header('if-none-match'), etag)) return response.send({ status: 304, headers }, null);
    const body = isGzip ? file.gzip! : file.bytes;
    return response.send(
      { status: 200, headers: isGzip ? { ...headers, 'Content-Encoding': 'gzip' } : headers },
      body,
    );
  }
}

/** Whether the client already has the response with this tag (RFC 9110, section 13.1.2). */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((tag) => {
    const trimmed = tag.trim();
    return trimmed === '*' || trimmed === etag || trimmed === `W/${etag}`;
  });
}
