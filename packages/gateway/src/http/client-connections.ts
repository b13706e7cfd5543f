/** Connections of clients and the bytes on them: counted where HTTP and WebSockets alike pass, on the sockets. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { GatewayMetrics } from '../metrics.ts'

export function observeConnections(server: Server, metrics: GatewayMetrics): void {
  const open = new Set<Socket>()
  const closed = { received: 0, sent: 0 }
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      closed.received += socket.bytesRead
      closed.sent += socket.bytesWritten
    })
  })
  metrics.from('sandglass_gateway_connections', () => open.size)
  metrics.from('sandglass_gateway_client_bytes_total', () => [
    { labels: { direction: 'received' }, value: [...open].reduce((sum, { bytesRead }) => sum + bytesRead, closed.received) },
    { labels: { direction: 'sent' }, value: [...open].reduce((sum, { bytesWritten }) => sum + bytesWritten, closed.sent) },
  ])
}
