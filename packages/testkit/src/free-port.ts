/**
 * A port to give to a process that is started later, and again after it was killed. It is none that the kernel hands out by itself, so no connection of
 * somebody else takes it meanwhile.
 */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const LOWEST_PORT = 20_000
/** From here on the kernel takes local ports for connections. */
const CONNECTION_PORTS = 32_768
const TRIES = 100

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LOWEST_PORT, CONNECTION_PORTS)
    if (await canListen(port)) return port
  }
  throw new Error(`none of ${TRIES} ports from ${LOWEST_PORT} on is free`)
}
