import type { TransportRequest, TransportResponse } from '../http/transport.js';
import { acceptsGzip } from '../request/accept-encoding.js';
import { nothingThere } from './console-router.js';
import type { PageRoute } from './console-route.js';
import { readViewerFiles, type ViewerFile } from './viewer-files.js';

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
