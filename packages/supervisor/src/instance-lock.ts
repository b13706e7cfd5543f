/** One supervisor per home: an abstract unix socket, which the kernel frees when its holder is gone, however it went. */
import { createServer, type Server } from 'node:net'

/** @returns undefined when another supervisor of this installation holds it */
export function takeInstanceLock(id: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error) => {
      if ('code' in error && error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(`\0sandglass-${id}-supervisor`, () => resolve(server))
  })
}
