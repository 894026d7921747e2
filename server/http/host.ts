import { isIPv6 } from 'node:net';

/** A name has at most 253 characters, followed by the port. */
const hostCharactersMax = 262;
const portMax = 65_535;

/**
 * The name or address in a Host header or in the authority of a URL, without the port and without the brackets of an IPv6 address.
 * Undefined for a text that is not valid by RFC 3986, section 3.2.2, and for an empty name, which no `http` URL may have.
 */
export function nameOfHost(host: string): string | undefined {
  if (host.length > hostCharactersMax) return undefined;
  if (host.startsWith('[')) {
    const end = host.indexOf(']');
    const address = host.slice(1, end);
    return end > 0 && !address.includes('%') && isIPv6(address) && isPort(host.slice(end + 1))
      ? address
      : undefined;
  }
  const colon = host.indexOf(':');
  const name = colon < 0 ? host : host.slice(0, colon);
  return isName(name) && isPort(colon < 0 ? '' : host.slice(colon)) ? name : undefined;
}

/** Whether a text is empty, or a colon and a port number. RFC 3986 allows a colon without digits. */
function isPort(text: string): boolean {
  return text === '' || (/^:\d{0,5}$/.test(text) && Number(text.slice(1)) <= portMax);
}

function isName(text: string): boolean {
  return /^(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/.test(text);
}
