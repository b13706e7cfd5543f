/** JSON bodies that come from clients. */
import type { IncomingMessage } from 'node:http'
import { CodedError, LIMITS, type Parser, parseJsonText } from '@sandglass/contract'
import { ClientGone } from './client-stream.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })

function tooLarge(limitBytes: number): CodedError {
  return new CodedError('body_too_large', `The body has more than ${limitBytes} bytes.`, { limit: { name: 'apiBodyBytes', value: limitBytes } })
}

function checkMediaType(request: IncomingMessage): void {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== undefined && type !== 'application/json') {
    throw new CodedError('unsupported_media_type', 'Send the body as `content-type: application/json`.')
  }
}

/** What is behind a body that is too large is left in the stream. */
function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return reject(tooLarge(limitBytes))
    if (request.destroyed) return reject(new ClientGone())
    request.socket.setTimeout(LIMITS.uploadIdleMs)
    const chunks: Buffer[] = []
    let bytes = 0
    const stop = () => {
      request.off('data', take)
      request.off('end', end)
      request.off('error', gone)
      request.off('close', gone)
    }
    const fail = (error: unknown) => {
      stop()
      reject(error)
    }
    const gone = () => fail(new ClientGone())
    const take = (chunk: Buffer) => {
      bytes += chunk.byteLength
      chunks.push(chunk)
      if (bytes <= limitBytes) return
      request.pause()
      fail(tooLarge(limitBytes))
    }
    const end = () => {
      stop()
      request.socket.setTimeout(0)
      const [only] = chunks
      resolve(only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, bytes))
    }
    request.on('data', take)
    request.once('end', end)
    request.once('error', gone)
    request.once('close', gone)
  })
}

/** @throws CodedError `unsupported_media_type`, `body_too_large`, `invalid_request` */
export async function readJson<T>(request: IncomingMessage, parser: Parser<T>): Promise<T> {
  checkMediaType(request)
  const bytes = await readBytes(request, LIMITS.apiBodyBytes)
  let value: unknown
  try {
    value = parseJsonText(decoder.decode(bytes))
  } catch (cause) {
    if (cause instanceof CodedError) throw cause
    throw new CodedError('invalid_request', bytes.byteLength === 0 ? 'The body is empty; send JSON.' : 'The body is not JSON in UTF-8.', { cause })
  }
  return parser.parse(value)
}
