/** Statements that are sent in one turn leave as one piece, in their order. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { GatheringSocket } from '../src/store/gathering-socket.ts'

/** Counts how often it hands something to the kernel. */
class CountedSocket extends GatheringSocket {
  pieces = 0

  override _writev(...args: Parameters<NonNullable<GatheringSocket['_writev']>>): void {
    this.pieces += 1
    super._writev?.(...args)
  }

  override _write(...args: Parameters<GatheringSocket['_write']>): void {
    this.pieces += 1
    super._write(...args)
  }
}

test('what is written in one turn is one piece; the next turn begins another', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  const socket = new CountedSocket()
  try {
    await once(server, 'listening')
    const received = once(server, 'connection').then(([socket]) => text(socket))
    const address: AddressInfo | string | null = server.address()
    assert.ok(address !== null && typeof address === 'object')
    socket.connect(address.port, '127.0.0.1')
    await once(socket, 'connect')
    for (const statement of ['a', 'b', 'c']) {
      socket.write(statement)
      await Promise.resolve()
    }
    assert.equal(socket.pieces, 0, 'it waits for the end of the turn')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(socket.pieces, 1)
    await new Promise<void>((resolve, reject) => socket.write('d', 'utf8', (error) => (error ? reject(error) : resolve())))
    assert.equal(socket.pieces, 2)
    socket.end()
    assert.equal(await received, 'abcd')
  } finally {
    socket.destroy()
    server.close()
  }
})
