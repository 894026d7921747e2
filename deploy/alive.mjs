// The health check of a container: whether the server in it answers at its console. Where that is elsewhere, name its address as an argument.
const address = process.argv[2] ?? 'http://127.0.0.1:2112';

fetch(`${address}/livez`, { signal: AbortSignal.timeout(4000) }).then(
  (response) => process.exit(response.ok ? 0 : 1),
  (error) => {
    process.stderr.write(`${address} does not answer: ${error.cause?.message ?? error.message}\n`);
    process.exit(1);
  },
);
