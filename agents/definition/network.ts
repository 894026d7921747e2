import { isIP } from 'node:net';

/** The problem with the text of an address or a network (`10.0.0.0/8`); undefined for a valid one. */
export function networkProblem(text: string): string | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const bitsMax = version === 6 ? 128 : 32;
  const isNetwork = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  if (version !== 0 && isNetwork && more.length === 0) return undefined;
  return `expected an address such as 127.0.0.1, or a network such as 10.0.0.0/8, not ${JSON.stringify(text)}`;
}
