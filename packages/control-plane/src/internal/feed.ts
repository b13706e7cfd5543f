/**
 * The feed of one gateway: what makes something that it has cached wrong. When wake-ups of other replicas may have been missed the stream
 * ends; a gateway that loses its feed treats all it has cached as unknown.
 */
import type { Writable } from 'node:stream'
import type { FeedEvent } from '@sandglass/contract'
import type { WakeBus } from '../events/wake-bus.ts'

/** Bytes that may wait for a slow reader before it is cut. */
const BACKLOG_BYTES = 1024 * 1024

/** @returns settles when the stream is over; `close` ends it */
export function serveFeed(bus: WakeBus, output: Writable, heartbeatMs: number): { done: Promise<void>; close: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const close = (): void => {
    clearInterval(heartbeat)
    for (const remove of off) remove()
    output.end()
    resolve()
  }
  const write = (event: FeedEvent): void => {
    output.write(`${JSON.stringify(event)}\n`)
    if (output.writableLength > BACKLOG_BYTES) close()
  }
  const off = [
    bus.on('key_revoked', (id) => write({ type: 'key_revoked', api_key_id: id })),
    bus.on('sandbox', (key) => {
      const [id = '', generation] = key.split(' ')
      write({ type: 'sandbox_changed', sandbox_id: id, generation: Number(generation) })
    }),
    bus.on('host_fenced', (key) => {
      const [id = '', epoch] = key.split(' ')
      write({ type: 'host_fenced', host_id: id, epoch: Number(epoch) })
    }),
    bus.onGap(close),
  ]
  const heartbeat = setInterval(() => write({ type: 'heartbeat' }), heartbeatMs)
  output.once('close', close)
  // The first line tells that the feed is open.
  write({ type: 'heartbeat' })
  return { done: promise, close }
}
