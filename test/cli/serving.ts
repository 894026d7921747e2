import type { Running } from './process.js';

/** Any free ports, for a server and its console. */
export const anyPorts = ['--listen', '127.0.0.1:0', '--console', '127.0.0.1:0'];

/** The addresses that a server reports. */
export async function addressesOf(server: Running): Promise<{ operators: string; route: string }> {
  await server.shows('serving ');
  const shown = server.output();
  return {
    operators: /^viewer {3}(\S+)$/m.exec(shown)![1]!,
    route: /^serving {2}(\S+)\/api/m.exec(shown)![1]!,
  };
}
