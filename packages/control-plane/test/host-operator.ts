/** What an operator asks of hosts, and what the audit log keeps of it. */
import type { Host } from '@sandglass/contract'
import type { Answer, Rig } from './harness.ts'

/** @param path behind /v1/hosts */
export const ask = async (rig: Rig, method: string, path: string, body?: unknown): Promise<Answer<Host>> =>
  await rig.call<Host>(method, `/v1/hosts${path}`, { key: rig.keys.operator, ...(body === undefined ? {} : { body }) })
export const told = async (rig: Rig, idOrName: string): Promise<Host> => (await ask(rig, 'GET', `/${idOrName}`)).body
/** Of operators, in their order. */
export const actions = async (rig: Rig): Promise<string[]> =>
  (await rig.rows<{ action: string }>("SELECT action FROM sandglass.audit_log WHERE action LIKE 'host.%' AND action <> 'host.register' ORDER BY id")).map(
    (row) => row.action,
  )
