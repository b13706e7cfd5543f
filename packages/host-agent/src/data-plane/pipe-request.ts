/**
 * Joins one request of a gateway to one request of a guest.
 *
 * Nothing is buffered beyond the flow-control windows: each side is read only as fast as the other takes it. An end is passed on only when
 * the side that sends has truly ended; whatever else ends a stream (reset, lost session, cancelled client) resets the other one, because
 * `close` would first send a clean end, and half a body would pass for a whole one. A body whose length was announced ends with its last
 * byte: told with it, its end wakes nobody a second time.
 */
import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2'
import { CodedError } from '@sandglass/contract'
import { headersFromGuest, lengthOf, statusFromGuest, trailersFromGuest } from './header-filter.ts'

export type PipeEnd = { readonly bytesUp: number; readonly bytesDown: number; readonly clean: boolean }

class BrokenOff extends Error {
  override readonly name = 'BrokenOff'
}

/**
 * @param lengthUp bytes of the gateway's body, when it has announced them
 * @param refuse answers the gateway with an error of the host; called only while nothing was answered
 * @returns when both streams are closed; never rejects
 */
export function pipeRequest(
  gateway: ServerHttp2Stream,
  guest: ClientHttp2Stream,
  lengthUp: number | undefined,
  refuse: (error: CodedError) => void,
): Promise<PipeEnd> {
  let bytesUp = 0
  let bytesDown = 0
  let lengthDown: number | undefined
  let answered = false
  let guestDone = false
  let broken = false
  let trailers: ReturnType<typeof trailersFromGuest> = {}

  const isWhole = (): boolean => guestDone || bytesDown === lengthDown
  const breakOff = (error: Error): void => {
    if (broken) return
    broken = true
    guest.destroy(error)
    if (answered) gateway.destroy(error)
    else if (!gateway.destroyed) {
      answered = true
      refuse(new CodedError('lost_contact', 'The guest agent broke off before it answered.', { cause: error }))
    }
  }

  // Up: gateway → guest.
  gateway.on('data', (chunk: Buffer) => {
    bytesUp += chunk.byteLength
    if (!guest.writable) return
    if (bytesUp === lengthUp) guest.end(chunk)
    else if (!guest.write(chunk)) gateway.pause()
  })
  guest.on('drain', () => gateway.resume())
  gateway.once('end', () => {
    if (gateway.rstCode === constants.NGHTTP2_NO_ERROR && !gateway.aborted && !guest.writableEnded) guest.end()
  })
  gateway.once('aborted', () => guest.destroy(new BrokenOff('the gateway cancelled')))
  gateway.on('error', () => guest.destroy(new BrokenOff('the gateway broke off')))

  // Down: guest → gateway.
  guest.once('response', (headers, flags) => {
    const status = statusFromGuest(headers[':status'])
    if (status === undefined || gateway.destroyed || answered) return breakOff(new BrokenOff('the guest answered with a status that is none'))
    answered = true
    lengthDown = lengthOf(headers)
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 || lengthDown === 0
    gateway.respond({ ...headersFromGuest(headers), ':status': status }, { endStream, waitForTrailers: !endStream && lengthDown === undefined })
  })
  gateway.once('wantTrailers', () => {
    if (gateway.destroyed) return
    gateway.sendTrailers(trailers)
  })
  guest.on('data', (chunk: Buffer) => {
    bytesDown += chunk.byteLength
    if (!gateway.writable) return
    if (bytesDown === lengthDown) gateway.end(chunk)
    else if (!gateway.write(chunk)) guest.pause()
  })
  gateway.on('drain', () => guest.resume())
  guest.once('trailers', (headers) => {
    trailers = trailersFromGuest(headers)
  })
  guest.once('end', () => {
    if (isWhole()) return
    // A stream can also be reset without an error before there was an answer; to Node.js it has ended well.
    if (guest.rstCode !== constants.NGHTTP2_NO_ERROR || guest.aborted || !answered) return breakOff(new BrokenOff('the guest broke off'))
    guestDone = true
    if (gateway.writable) gateway.end()
  })
  guest.on('error', breakOff)

  return new Promise((resolve) => {
    let open = 2
    const closed = (): void => {
      open -= 1
      if (open === 0) resolve({ bytesUp, bytesDown, clean: isWhole() })
    }
    guest.once('close', () => {
      if (!isWhole()) breakOff(new BrokenOff('the guest went away'))
      // The guest may have answered without reading everything; what still comes from the gateway goes nowhere.
      else if (!gateway.readableEnded) gateway.resume()
      closed()
    })
    gateway.once('close', () => {
      if (!guest.destroyed && !guestDone) guest.destroy(isWhole() ? undefined : new BrokenOff('the gateway went away'))
      closed()
    })
  })
}
