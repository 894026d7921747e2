/** An address of 4 or 16 bytes as text; an IPv4-mapped IPv6 address as IPv4. Empty for any other number of bytes. */
export function textOfAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return '';
  if (bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff)
    return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16));
  // `URL` writes the shortest form, as Node's sockets do.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
