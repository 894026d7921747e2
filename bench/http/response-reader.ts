const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');
/** Maximum length of a head or the size line of a chunk; anything longer is not HTTP. */
const waitingBytesMax = 64 * 1024;

type State = 'head' | 'body' | 'size' | 'piece' | 'pieceEnd' | 'trailer';

/**
 * Counts the responses on a connection without storing their bodies. It does as little as possible, so that the server is measured.
 * Supports Content-Length and chunked bodies. Throws for a status other than 200.
 */
export class ResponseReader {
  /** Number of complete responses. */
  responses = 0;
  /** Bytes of their bodies, without chunk framing. */
  bodyBytes = 0;
  private state: State = 'head';
  private left = 0;
  private waiting: Buffer = Buffer.alloc(0);

  /** Takes the next bytes of the connection. */
  take(piece: Buffer): void {
    let bytes = this.waiting.length === 0 ? piece : Buffer.concat([this.waiting, piece]);
    this.waiting = Buffer.alloc(0);
    while (bytes.length > 0) {
      if (this.state === 'body' || this.state === 'piece') {
        bytes = this.skip(bytes);
        continue;
      }
      const end = bytes.indexOf(this.state === 'head' ? headEnd : lineEnd);
      if (end < 0) {
        if (bytes.length > waitingBytesMax) throw new Error('the server does not speak HTTP');
        this.waiting = Buffer.from(bytes);
        return;
      }
      const text = bytes.toString('latin1', 0, end);
      bytes = bytes.subarray(end + (this.state === 'head' ? headEnd : lineEnd).length);
      this.takeLine(text);
    }
  }

  private skip(bytes: Buffer): Buffer {
    const taken = Math.min(this.left, bytes.length);
    this.left -= taken;
    this.bodyBytes += taken;
    if (this.left === 0) {
      if (this.state === 'piece') this.state = 'pieceEnd';
      else this.endResponse();
    }
    return bytes.subarray(taken);
  }

  private takeLine(text: string): void {
    switch (this.state) {
      case 'head':
        return this.takeHead(text);
      case 'size':
        this.left = Number.parseInt(text, 16);
        if (Number.isNaN(this.left)) throw new Error(`not a size of a chunk: ${JSON.stringify(text)}`);
        this.state = this.left === 0 ? 'trailer' : 'piece';
        return;
      case 'pieceEnd':
        this.state = 'size';
        return;
      default:
        // The empty line after the last chunk; our server sends no trailers.
        if (text === '') this.endResponse();
    }
  }

  private takeHead(head: string): void {
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`the server answered ${head.split('\r\n')[0]}`);
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    if (length !== undefined) {
      this.left = Number(length);
      if (this.left === 0) this.endResponse();
      else this.state = 'body';
      return;
    }
    if (!/^transfer-encoding: *chunked/im.test(head)) throw new Error('a response without a length');
    this.state = 'size';
  }

  private endResponse(): void {
    this.responses++;
    this.state = 'head';
  }
}
