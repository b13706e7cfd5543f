/** Ports: whether one is free, and any free one. */
import { createServer } from 'node:net'
import { CodedError } from '@sandglass/contract/errors'

/** Listens for a moment. The port may be taken again right after; whoever needs it then says so itself. */
function tryListen(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : port))
    })
  })
}

export const LOOPBACK = '127.0.0.1'

export const anyPort = (): Promise<number> => tryListen(LOOPBACK, 0)

/**
 * @param upWith the `up` that takes another port
 * @throws CodedError `port_in_use` with what to type
 */
export async function requirePort(host: string, port: number, what: string, upWith: (port: number) => string): Promise<void> {
  try {
    await tryListen(host, port)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EADDRINUSE') {
      throw new CodedError('port_in_use', `Port ${port} on ${host}, meant for the ${what}, is in use. Type: ${upWith(port + 100)}`, { cause })
    }
    throw new CodedError('invalid_request', `The ${what} cannot listen on ${host} port ${port} (${String(code)}).`, { cause })
  }
}
