/** The line that is printed once all clients have connected for the `times`th time. */
export function connectedLine(times: number): string {
  return `all connected ${times}\n`;
}
