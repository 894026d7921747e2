import { BlockList, isIP, isIPv6 } from 'node:net';

/** Addresses of proxies whose `X-Forwarded-For` is believed. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** @param proxies addresses, or networks as `10.0.0.0/8`: those that `networkProblem` finds nothing wrong with */
  constructor(proxies: readonly string[]) {
    this.#isEmpty = proxies.length === 0;
    for (const proxy of proxies) {
      const [address, bits] = proxy.split('/') as [string, string | undefined];
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  /**
   * The client that a request is counted for: the other end of the connection, or, where that is a trusted proxy, the last address of
   * `X-Forwarded-For` that is none. Of an IPv6 address its /64, which is what one household or host has.
   *
   * @param forwardedFor reads the header, its lines joined by commas
   */
  clientOf(remoteAddress: string, forwardedFor: () => string | undefined): string {
    if (this.#isEmpty || !this.#trusts(remoteAddress)) return networkOf(remoteAddress);
    let client = remoteAddress;
    const hops = (forwardedFor() ?? '').split(',');
    for (let i = hops.length - 1; i >= 0; i--) {
      const hop = hops[i]!.trim();
      // A word that is no address tells nothing. The proxy that sent it counts as the client.
      if (isIP(hop) === 0) break;
      client = hop;
      if (!this.#trusts(hop)) break;
    }
    return networkOf(client);
  }

  #trusts(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  }
}

/** The /64 of an IPv6 address; any other address as it is. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('%')[0]!.split('::') as [string, string | undefined];
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  // `::` stands for as many zeros as there is room for; only the first four groups count here.
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  const groups = tail === undefined ? first : [...first, ...zeros, ...last];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
