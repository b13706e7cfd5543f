/** Asking the guest for the stream of a session: starts the process, or finds it, and follows its output. */
import { CodedError, ProcessSchema, parserOf, type TerminalSize } from '@sandglass/contract'
import type { GuestClient } from '../hosts/guest-client.ts'
import type { HostAnswer } from '../hosts/host-answer.ts'
import { guestQuery } from '../http/raw-query.ts'
import type { AttachOpening, Opening, StartOpening } from './opening.ts'

const process = parserOf(ProcessSchema)

/** @throws CodedError why it could not be started or found */
export function openOutput(guest: GuestClient, opening: Opening, signal: AbortSignal): Promise<HostAnswer> {
  return opening.type === 'start' ? start(guest, opening, signal) : attach(guest, opening, signal)
}

async function start(guest: GuestClient, { processes, killOnDisconnect }: StartOpening, signal: AbortSignal): Promise<HostAnswer> {
  const path = `/v1/exec${guestQuery({ kill_on_disconnect: killOnDisconnect ? 1 : undefined })}`
  let failure: unknown
  for (const json of processes) {
    try {
      return await guest.send({ method: 'POST', path, json, isRepeatable: !killOnDisconnect, signal })
    } catch (error) {
      if (!(error instanceof CodedError && error.code === 'executable_not_found')) throw error
      failure ??= error
    }
  }
  throw failure
}

async function attach(guest: GuestClient, { process: name, since, size }: AttachOpening, signal: AbortSignal): Promise<HostAnswer> {
  if (size !== undefined) await resizeFirst(guest, name, size, signal)
  const path = `/v1/processes/${name}/output${guestQuery({ stream: 'both', since: since.stdout, since_stderr: since.stderr, follow: 1 })}`
  return guest.send({ method: 'GET', path, isRepeatable: true, signal })
}

/** So that the program redraws for the size that the viewer has, before its first byte comes. */
async function resizeFirst(guest: GuestClient, name: string, size: TerminalSize, signal: AbortSignal): Promise<void> {
  try {
    await guest.json({ method: 'POST', path: `/v1/processes/${name}/resize`, json: size, isRepeatable: true, signal }, process)
  } catch (error) {
    if (!(error instanceof CodedError && error.code === 'process_exited')) throw error
  }
}
