/** Liveness, readiness and metrics for the supervisor and for scrapers: HTTP/1.1 on loopback, nothing about any tenant. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'

export type HealthWorld = {
  /** Undefined when ready, else what it waits for. */
  notReadyBecause(): string | undefined
  metrics(): string
}

export type HealthServer = { readonly url: string; close(): Promise<void> }

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
}

export async function startHealthServer(port: number, world: HealthWorld): Promise<HealthServer> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 5_000 }, (request, response) => {
    if (request.method !== 'GET') return answer(response, 405, 'application/json', '{"status":"method_not_allowed"}')
    if (request.url === '/healthz') return answer(response, 200, 'application/json', '{"status":"ok"}')
    if (request.url === '/metrics') return answer(response, 200, 'text/plain; version=0.0.4', world.metrics())
    if (request.url !== '/readyz') return answer(response, 404, 'application/json', '{"status":"not_found"}')
    const reason = world.notReadyBecause()
    answer(
      response,
      reason === undefined ? 200 : 503,
      'application/json',
      JSON.stringify(reason === undefined ? { status: 'ready' } : { status: 'not_ready', reason }),
    )
  })
  server.maxConnections = 64
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the health server has no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
