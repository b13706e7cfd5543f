/** Feeding standard input that came with the request: all of it, then its end. */
import { CodedError, type ErrorCode, parserOf, StdinAcceptedSchema } from '@sandglass/contract'
import type { GuestClient } from '../hosts/guest-client.ts'
import { processSegment } from '../http/process-segment.ts'

const accepted = parserOf(StdinAcceptedSchema)
/** A process need not read its input; like a broken pipe in a shell, that is no error. */
const NOT_READ: ReadonlySet<ErrorCode> = new Set(['stdin_closed', 'process_exited', 'process_not_found'] satisfies ErrorCode[])

/** The offset makes it safe to repeat. @throws CodedError when the bytes may not have arrived */
export async function feedStdin(guest: GuestClient, processId: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const path = `/v1/processes/${processSegment(processId)}/stdin?offset=0&close=1`
  try {
    await guest.json({ method: 'POST', path, body: bytes, isRepeatable: true, isLong: true, signal }, accepted)
  } catch (error) {
    if (!(error instanceof CodedError && NOT_READ.has(error.code))) throw error
  }
}
