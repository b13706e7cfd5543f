/**
 * Writing to a client as fast as it reads and no faster.
 *
 * A stream that fails after its headers are sent must not look complete: the connection is destroyed, so that the client sees a broken
 * transfer instead of a short one.
 */
import type { ServerResponse } from 'node:http'
import type { HostAnswer } from '../hosts/host-answer.ts'
import { nextOfDownload } from '../hosts/steady-body.ts'
import type { World } from '../world.ts'

/** The client closed its connection; nobody is left to tell. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
  constructor() {
    super('the client went away')
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', closed)
      resolve()
    }
    const closed = () => {
      response.off('drain', done)
      reject(new ClientGone())
    }
    response.once('drain', done)
    response.once('close', closed)
  })
}

/** @throws ClientGone */
export async function writeChunk(response: ServerResponse, chunk: Uint8Array | string): Promise<void> {
  if (response.destroyed || response.closed) throw new ClientGone()
  if (!response.write(chunk)) await drained(response)
}

/** What is there goes out in one piece. @throws ClientGone */
async function writeTogether(response: ServerResponse, chunks: readonly Uint8Array[]): Promise<number> {
  if (response.destroyed || response.closed) throw new ClientGone()
  let bytes = 0
  let isBehind = false
  response.cork()
  for (const chunk of chunks) {
    bytes += chunk.byteLength
    isBehind = !response.write(chunk)
  }
  response.uncork()
  if (isBehind && response.writableNeedDrain) await drained(response)
  return bytes
}

/**
 * Copies the whole body of an answer, or throws; then the caller destroys the connection.
 * @param announcedBytes what the client was told to expect. With the last of them the answer is whole to it and the connection free for its next
 * request, so what becomes of the host's stream behind them must not touch it.
 * @returns bytes
 * @throws ClientGone, or as `nextOfDownload`
 */
export async function writeAll(response: ServerResponse, answer: HostAnswer, world: World, announcedBytes = Number.POSITIVE_INFINITY): Promise<number> {
  let bytes = 0
  try {
    while (bytes < announcedBytes) {
      const chunks = await nextOfDownload(answer, world)
      if (chunks === undefined) return bytes
      bytes += await writeTogether(response, chunks)
    }
    answer.leave(world)
  } finally {
    answer.cancel()
  }
  return bytes
}
