/** The lines that are exchanged on a guest's connection before it speaks HTTP/2. Bounded in size and time: the guest is hostile. */
import type { Socket } from 'node:net'
import { CodedError, type GuestPreamble, type HostPreamble, LIMITS, parseGuestPreamble } from '@sandglass/contract'

const NEWLINE = 0x0a

/** @throws CodedError `protocol_unsupported`; Error when the guest is slow or goes away */
export function readPreamble(socket: Socket): Promise<GuestPreamble> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (settle: () => void): void => {
      clearTimeout(timer)
      socket.off('data', onData).off('close', onClose)
      socket.pause()
      settle()
    }
    const fail = (error: Error): void => finish(() => reject(error))
    const onClose = (): void => fail(new Error('the guest went away before its preamble'))
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk)
      size += chunk.byteLength
      const newline = chunk.indexOf(NEWLINE)
      if (newline === -1) {
        if (size > LIMITS.guestPreambleBytes) fail(new CodedError('protocol_unsupported', 'The guest’s preamble is too long.'))
        return
      }
      // The guest waits for the answer, so nothing can follow the line.
      if (newline !== chunk.byteLength - 1) {
        fail(new CodedError('protocol_unsupported', 'The guest did not wait for an answer to its preamble.'))
        return
      }
      const line = Buffer.concat(chunks).subarray(0, -1).toString('utf8')
      finish(() => {
        try {
          resolve(parseGuestPreamble(line))
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      })
    }
    const timer = setTimeout(() => fail(new Error('the guest sent no preamble in time')), LIMITS.guestPreambleMs)
    socket.on('data', onData).once('close', onClose)
  })
}

export function writeAnswer(socket: Socket, answer: HostPreamble): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(`${JSON.stringify(answer)}\n`, (error) => (error == null ? resolve() : reject(error)))
  })
}
