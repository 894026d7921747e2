/** Maximum length of a line in characters. The server's own limit for a line of a log is far lower. */
const lineCharsMax = 256 * 1024 * 1024;

/** Splits text that arrives in pieces into lines, in linear time and memory. */
export class LineSplitter {
  private readonly begun: string[] = [];
  private begunChars = 0;

  /**
   * The lines that end in this piece, without `
   * ` or `\r
   * `.
   */
  push(piece: string): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', from)) {
      this.begun.push(piece.slice(from, at));
      const line = this.begun.length === 1 ? this.begun[0]! : this.begun.join('');
      lines.push(line.endsWith('\r') ? line.slice(0, -1) : line);
      this.begun.length = 0;
      this.begunChars = 0;
      from = at + 1;
    }
    if (from < piece.length) this.begin(piece.slice(from));
    return lines;
  }

  /** Whether the text so far ends within a line. */
  get isInside(): boolean {
    return this.begunChars > 0;
  }

  private begin(text: string): void {
    this.begun.push(text);
    this.begunChars += text.length;
    if (this.begunChars > lineCharsMax) throw new RangeError('a line of the answer is too long to be shown');
  }
}
