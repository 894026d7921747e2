import type { TransportRequest, TransportResponse } from '../http/transport.js';
import { acceptsGzip } from '../request/accept-encoding.js';
import { nothingThere } from './console-router.js';
import type { ConsoleRoute } from './console-route.js';
import { readViewerFiles, type ViewerFile } from './viewer-files.js';

/** `GET /` and what belongs to it: the viewer, whose files are read once, when the first of them is asked for. */
export class ViewerRoute implements ConsoleRoute {
  /** The files tell nothing of anybody's logs, and the page must be there to ask for a token. */
  readonly rights = 'none';
  #files: ReadonlyMap<string, ViewerFile> | undefined;

  answer(request: TransportRequest, response: TransportResponse): Promise<void> | undefined {
    this.#files ??= readViewerFiles();
    const file = this.#files.get(request.rawPath);
    if (file === undefined) throw nothingThere();
    const isGzip = file.gzip !== undefined && acceptsGzip(request.header('accept-encoding'));
    // Two forms of a file are two answers, and have a tag each.
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

/** Whether a client has this answer already (RFC 9110, section 13.1.2). */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((tag) => {
    const trimmed = tag.trim();
    return trimmed === '*' || trimmed === etag || trimmed === `W/${etag}`;
  });
}
