/** What the SDK takes from its surroundings, passed in so that tests can own time, chance and the network. */
import { send } from '#platform'

/** The part of a browser's or Node.js's WebSocket that sessions use. */
export type SocketHandlers = {
  open(): void
  message(bytes: Uint8Array): void
  /** Called once, also when the connection was never opened. */
  close(code: number, reason: string): void
}

export type Socket = {
  send(bytes: Uint8Array): void
  close(code: number): void
}

export type SocketRequest = {
  readonly url: string
  /** The first one is spoken. */
  readonly protocols: readonly string[]
  /** Empty in browsers, which can send none. */
  readonly headers: Readonly<Record<string, string>>
}

export type World = {
  readonly fetch: typeof fetch
  readonly connect: (request: SocketRequest, handlers: SocketHandlers) => Socket
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Calls back after `ms`; the answer cancels it. */
  readonly timer: (ms: number, callback: () => void) => () => void
  /** 0 ≤ x < 1. */
  readonly random: () => number
  /** A fresh key that nobody can guess, `[A-Za-z0-9-]`. */
  readonly newKey: () => string
}

const NORMAL_CLOSE = 1000
const NEVER_OPENED = 1006

function connect(request: SocketRequest, handlers: SocketHandlers): Socket {
  const socket =
    Object.keys(request.headers).length === 0
      ? new WebSocket(request.url, [...request.protocols])
      : new WebSocket(request.url, { protocols: [...request.protocols], headers: { ...request.headers } })
  socket.binaryType = 'arraybuffer'
  socket.addEventListener('open', () => handlers.open())
  socket.addEventListener('message', (event) => {
    const data: unknown = event.data
    if (data instanceof ArrayBuffer) handlers.message(new Uint8Array(data))
    else socket.close(NORMAL_CLOSE)
  })
  // `close` follows every `error`; this listener only keeps the event from being reported as unhandled.
  socket.addEventListener('error', () => undefined)
  socket.addEventListener('close', (event) => handlers.close(event.code === 0 ? NEVER_OPENED : event.code, event.reason))
  return {
    send: (bytes) => {
      if (socket.readyState === socket.OPEN) socket.send(bytes)
    },
    close: (code) => socket.close(code),
  }
}

export const realWorld: World = {
  fetch: send,
  connect,
  now: () => performance.now(),
  timer(ms, callback) {
    const handle = setTimeout(callback, ms)
    return () => clearTimeout(handle)
  },
  random: () => Math.random(),
  newKey: () => crypto.randomUUID(),
}

/** Waits, unless the signal says stop. @throws the signal's reason */
export function sleep(world: World, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const stop = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = world.timer(ms, () => {
      signal?.removeEventListener('abort', stop)
      resolve()
    })
    signal?.addEventListener('abort', stop, { once: true })
  })
}
