/** The body of an exec request, as what the guest agent takes. */
import { CodedError, checkCommand, type Exec, ExecSchema, isBase64, LIMITS, parserOf, randomBase32, type StartProcess } from '@sandglass/contract'
import type { World } from '../world.ts'

export const execParser = parserOf(ExecSchema)

function wrong(path: string, message: string): CodedError {
  return new CodedError('invalid_request', `${path} ${message}.`, { errors: [{ path, message }] })
}

/** Bytes to feed to standard input; undefined when none are given with the request. */
function stdinBytes({ stdin, stdin_encoding }: Exec): Uint8Array | undefined {
  if (typeof stdin !== 'string') {
    if (stdin_encoding !== undefined) throw wrong('/stdin_encoding', 'needs stdin as a string')
    return undefined
  }
  if (stdin_encoding === 'base64' && !isBase64(stdin)) throw wrong('/stdin', 'is not base64 with padding')
  const bytes = Buffer.from(stdin, stdin_encoding === 'base64' ? 'base64' : 'utf-8')
  const value = LIMITS.execJsonStdinBytes
  if (bytes.byteLength > value) {
    throw new CodedError('limit_exceeded', `/stdin has more than ${value} bytes. Write it to a file, or feed it over a session, where it flows.`, {
      limit: { name: 'execJsonStdinBytes', value },
      errors: [{ path: '/stdin', message: 'is too long' }],
    })
  }
  return bytes
}

export type ExecPlan = {
  readonly start: StartProcess & { readonly key: string }
  readonly stdin: Uint8Array | undefined
  readonly background: boolean
  readonly killOnDisconnect: boolean
}

/** A key is made when the client gave none, so that a start can be repeated without starting twice. @throws CodedError */
export function planExec(exec: Exec, world: World): ExecPlan {
  checkCommand(exec)
  const { stdin, stdin_encoding, process_key, background, kill_on_disconnect, ...command } = exec
  const bytes = stdinBytes(exec)
  const hasInput = bytes === undefined ? stdin === true : bytes.byteLength > 0
  return {
    start: { ...command, stdin: hasInput, key: process_key ?? `gw-${randomBase32(world.random)}` },
    stdin: hasInput ? bytes : undefined,
    background: background ?? false,
    killOnDisconnect: kill_on_disconnect ?? false,
  }
}
