/** Browsers: no headers on WebSockets, no bodies that are sent while they are made (over HTTP/1.1), no file system. */

import { parserOf } from '@sandglass/contract/schema'
import { type SessionAction, SessionTicketSchema } from '@sandglass/contract/session-ticket'
import type { DataPlane } from './data-plane.ts'
import { SandglassError } from './error.ts'
import type { SessionPass } from './platform.ts'

const TICKET_TIMEOUT_MS = 15_000
const parser = parserOf(SessionTicketSchema)

export const STREAMS_BODIES: boolean = false

export const send: typeof fetch = (...parameters) => fetch(...parameters)

/** A ticket is good once, so every connection asks for its own. @throws SandglassError */
export async function sessionPass(plane: DataPlane, action: SessionAction, signal: AbortSignal): Promise<SessionPass> {
  const url = `${plane.base}/sessions`
  const { protocol } = await plane.transport.json({ method: 'POST', url, json: { action }, repeatable: true, signal, timeoutMs: TICKET_TIMEOUT_MS }, parser)
  return { headers: {}, protocols: [protocol] }
}

function noFiles(): Promise<never> {
  return Promise.reject(
    new SandglassError('invalid_request', 'A browser has no file system to copy trees from or to. Use files.write, files.read and archives.'),
  )
}

export const upload = noFiles
export const download = noFiles
