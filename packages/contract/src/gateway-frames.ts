/**
 * Frames of the WebSocket subprotocol `sandglass.v1` (exec and terminal): one binary message is one frame, `[channel u8][payload]`.
 *
 * The client's first frame is a status frame `start` or `attach`; the server answers with status `started`. Output flows only within
 * credit that the client gives, standard input only within credit that the server gives, so a flood on one side never blocks a
 * signal, a resize or an exit. Offsets are not on the wire: `started` names the first offset of each stream, and a `gap` moves it.
 *
 * Standard input begins at `stdin.accepted` of `started`, or at the `stdin_offset` that an attach asks for: the first byte of which the client does
 * not know whether it arrived. `writer` names the client across its connections, because an offset alone cannot tell its repeat from what somebody
 * else has written there meanwhile; a writer that was overtaken gets the error `stdin_offset`. Terminals have many writers, and neither.
 */
import Type, { type Static } from 'typebox'
import { CodedError, isErrorCode } from './errors.ts'
import { LIMITS } from './limits.ts'
import { FieldErrorsSchema, ReachedLimitSchema } from './problem.ts'
import { PROCESS_KEY_PATTERN, ProcessSchema, SIGNALS, StartProcessSchema, TerminalSizeSchema } from './process.ts'
import { closed, nullable, oneOf, parserOf } from './schema.ts'

export const WS_SUBPROTOCOL = 'sandglass.v1'

export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, signal: 5, credit: 6, halfClose: 255 } as const

/** WebSocket close codes that mean something of ours. */
export const CLOSE_CODE = {
  normal: 1000,
  goingAway: 1001,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  tryAgain: 1013,
  malformed: 4400,
  unauthenticated: 4401,
  revoked: 4403,
  notFound: 4404,
  conflict: 4409,
  ended: 4410,
  takenOver: 4423,
  lostContact: 4502,
} as const

const offset = Type.Integer({ minimum: 0 })
const credit = Type.Integer({ minimum: 0, maximum: 64 * LIMITS.outputCreditBytes, description: 'Output bytes that may be sent before the next credit.' })

const writer = Type.Optional(Type.String({ pattern: PROCESS_KEY_PATTERN, description: 'Who writes to standard input. Default: this connection alone.' }))

export const ClientStatusSchema = Type.Union([
  closed({ type: Type.Literal('start'), process: StartProcessSchema, credit_bytes: credit, kill_on_disconnect: Type.Optional(Type.Boolean()), writer }),
  closed({
    type: Type.Literal('attach'),
    process_id: Type.String({ maxLength: 160, description: 'An id, or `key:` and a process key.' }),
    credit_bytes: credit,
    since_stdout: Type.Optional(offset),
    since_stderr: Type.Optional(offset),
    stdin: Type.Optional(Type.Boolean()),
    writer,
    stdin_offset: Type.Optional(offset),
  }),
])
export type ClientStatus = Static<typeof ClientStatusSchema>

export const ServerStatusSchema = Type.Union([
  closed({ type: Type.Literal('started'), process: ProcessSchema, stdout_offset: offset, stderr_offset: offset, stdin_credit_bytes: offset }),
  closed({ type: Type.Literal('gap'), stream: oneOf(['stdout', 'stderr']), from: offset, to: offset }),
  closed({ type: Type.Literal('heartbeat') }),
  closed({ type: Type.Literal('exit'), process: ProcessSchema }),
  closed({
    type: Type.Literal('error'),
    code: Type.String(),
    detail: Type.String(),
    request_id: Type.Optional(nullable(Type.String())),
    errors: FieldErrorsSchema,
    limit: ReachedLimitSchema,
  }),
])
export type ServerStatus = Static<typeof ServerStatusSchema>

const SignalPayloadSchema = closed({ signal: oneOf(SIGNALS), tree: Type.Optional(Type.Boolean()) })

const clientStatus = parserOf(ClientStatusSchema, 'malformed_frame')
const serverStatus = parserOf(ServerStatusSchema, 'malformed_frame')
const startProcess = parserOf(StartProcessSchema)
const resizePayload = parserOf(TerminalSizeSchema, 'malformed_frame')
const signalPayload = parserOf(SignalPayloadSchema, 'malformed_frame')

export type ClientFrame =
  | { channel: 'stdin'; bytes: Uint8Array }
  | { channel: 'status'; status: ClientStatus }
  | { channel: 'resize'; size: Static<typeof TerminalSizeSchema> }
  | { channel: 'signal'; signal: Static<typeof SignalPayloadSchema> }
  | { channel: 'credit'; bytes: number }
  | { channel: 'halfClose' }

export type ServerFrame =
  | { channel: 'stdout' | 'stderr'; bytes: Uint8Array }
  | { channel: 'status'; status: ServerStatus }
  | { channel: 'credit'; bytes: number }

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

function frame(channel: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + payload.byteLength)
  bytes[0] = channel
  bytes.set(payload, 1)
  return bytes
}

function creditPayload(bytes: number): Uint8Array {
  const payload = new Uint8Array(4)
  new DataView(payload.buffer).setUint32(0, bytes)
  return payload
}

const json = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value))

export function encodeClientFrame(message: ClientFrame): Uint8Array {
  switch (message.channel) {
    case 'stdin':
      return frame(CHANNEL.stdin, message.bytes)
    case 'status':
      return frame(CHANNEL.status, json(message.status))
    case 'resize':
      return frame(CHANNEL.resize, json(message.size))
    case 'signal':
      return frame(CHANNEL.signal, json(message.signal))
    case 'credit':
      return frame(CHANNEL.credit, creditPayload(message.bytes))
    case 'halfClose':
      return frame(CHANNEL.halfClose, Uint8Array.of(CHANNEL.stdin))
  }
}

export function encodeServerFrame(message: ServerFrame): Uint8Array {
  switch (message.channel) {
    case 'stdout':
      return frame(CHANNEL.stdout, message.bytes)
    case 'stderr':
      return frame(CHANNEL.stderr, message.bytes)
    case 'status':
      return frame(CHANNEL.status, json(message.status))
    case 'credit':
      return frame(CHANNEL.credit, creditPayload(message.bytes))
  }
}

function parseJson(payload: Uint8Array): unknown {
  if (payload.byteLength > LIMITS.controlFrameBytes) {
    throw new CodedError('malformed_frame', `A control frame has at most ${LIMITS.controlFrameBytes} bytes.`, {
      limit: { name: 'controlFrameBytes', value: LIMITS.controlFrameBytes },
    })
  }
  try {
    return JSON.parse(decoder.decode(payload))
  } catch (cause) {
    throw new CodedError('malformed_frame', 'A control frame is not JSON in UTF-8.', { cause })
  }
}

/** What is wrong with the command of a start is said as an exec request says it: it is no matter of frames. */
function parseClientStatus(value: unknown): ClientStatus {
  if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'start' && 'process' in value) startProcess.parse(value.process)
  return clientStatus.parse(value)
}

function parseCredit(payload: Uint8Array): number {
  if (payload.byteLength !== 4) throw new CodedError('malformed_frame', 'A credit frame has four bytes.')
  return new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0)
}

function dataPayload(payload: Uint8Array): Uint8Array {
  if (payload.byteLength > LIMITS.frameBytes) {
    throw new CodedError('malformed_frame', `A data frame has at most ${LIMITS.frameBytes} bytes.`, { limit: { name: 'frameBytes', value: LIMITS.frameBytes } })
  }
  return payload
}

/** @throws CodedError `malformed_frame`; `invalid_request` for a command that no exec request would have either */
export function parseClientFrame(bytes: Uint8Array): ClientFrame {
  const payload = bytes.subarray(1)
  switch (bytes[0]) {
    case CHANNEL.stdin:
      return { channel: 'stdin', bytes: dataPayload(payload) }
    case CHANNEL.status:
      return { channel: 'status', status: parseClientStatus(parseJson(payload)) }
    case CHANNEL.resize:
      return { channel: 'resize', size: resizePayload.parse(parseJson(payload)) }
    case CHANNEL.signal:
      return { channel: 'signal', signal: signalPayload.parse(parseJson(payload)) }
    case CHANNEL.credit:
      return { channel: 'credit', bytes: parseCredit(payload) }
    case CHANNEL.halfClose:
      if (payload.byteLength === 1 && payload[0] === CHANNEL.stdin) return { channel: 'halfClose' }
      throw new CodedError('malformed_frame', 'Half-close names channel 0.')
    default:
      throw new CodedError('malformed_frame', bytes.byteLength === 0 ? 'A frame has a channel byte.' : `Channel ${bytes[0]} is not for clients.`)
  }
}

/** @throws CodedError `malformed_frame` */
export function parseServerFrame(bytes: Uint8Array): ServerFrame {
  const payload = bytes.subarray(1)
  switch (bytes[0]) {
    case CHANNEL.stdout:
      return { channel: 'stdout', bytes: payload }
    case CHANNEL.stderr:
      return { channel: 'stderr', bytes: payload }
    case CHANNEL.status:
      return { channel: 'status', status: serverStatus.parse(parseJson(payload)) }
    case CHANNEL.credit:
      return { channel: 'credit', bytes: parseCredit(payload) }
    default:
      throw new CodedError('malformed_frame', `Channel ${bytes[0]} is not for servers.`)
  }
}

/** The CodedError that an `error` status stands for. */
export function errorOfStatus({ code, detail, errors, limit }: Extract<ServerStatus, { type: 'error' }>): CodedError {
  return new CodedError(isErrorCode(code) ? code : 'internal', detail, {
    ...(errors === undefined ? {} : { errors }),
    ...(limit === undefined ? {} : { limit }),
  })
}
