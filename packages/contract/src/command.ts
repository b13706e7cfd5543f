/** What schemas cannot say about a command, said the same by clients and by the gateway, whichever way it takes. */
import { CodedError } from './errors.ts'
import { LIMITS } from './limits.ts'
import type { StartProcess } from './process.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const encoder = new TextEncoder()

export const isBase64 = (text: string): boolean => BASE64.test(text)

function wrong(path: string, message: string): CodedError {
  return new CodedError('invalid_request', `${path} ${message}.`, { errors: [{ path, message }] })
}

/** @throws CodedError `invalid_request`, `limit_exceeded` */
export function checkCommand(command: Pick<StartProcess, 'argv' | 'argv_b64' | 'shell'>): void {
  const given = [command.argv, command.argv_b64, command.shell].filter((field) => field !== undefined)
  if (given.length !== 1) throw wrong('/argv', 'needs exactly one of argv, argv_b64 and shell')
  if (command.argv_b64?.some((text) => !isBase64(text))) throw wrong('/argv_b64', 'is not base64 with padding')
  const bytes = (command.argv ?? command.argv_b64 ?? []).reduce((sum, text) => sum + encoder.encode(text).byteLength, 0)
  if (bytes <= LIMITS.argvBytes) return
  const path = command.argv === undefined ? '/argv_b64' : '/argv'
  throw new CodedError('limit_exceeded', `${path} has more than ${LIMITS.argvBytes} bytes. Write what is long to a file and name the file.`, {
    limit: { name: 'argvBytes', value: LIMITS.argvBytes },
    errors: [{ path, message: 'is too long' }],
  })
}
