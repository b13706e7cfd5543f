/**
 * What operators do with hosts. Each is one transaction that locks the host's row, then its lease, then its capacity, and may be repeated: what is so
 * already stays so and makes no audit row. To a second removal there is no such host.
 */
import { CodedError, ERRORS, type HostLabels, LIMITS, type UpdateHost } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { changedLabels } from '../domain/host/labels.ts'
import { wakeDrain, wakeIdentity, wakePlacement, wakePool, wakeRelease } from '../events/wake-bus.ts'
import type { Principal } from '../store/api-keys.ts'
import { type AuditEntry, audit } from '../store/audit-log.ts'
import type { Transaction } from '../store/database.ts'
import {
  cordonHostRow,
  drainHostRow,
  endLeaseAndCount,
  lockHostsNamed,
  readHostLabels,
  removeHostRow,
  setHostLabels,
  uncordonHostRow,
} from '../store/host-changes.ts'
import { revokeIdentity } from '../store/identities.ts'
import { ambiguousHost, hostNotFound, NAMED_HOSTS } from './host-refusals.ts'

type Named = { readonly id: string; readonly name: string }

export type HostRequest = { readonly principal: Principal; readonly idOrName: string; readonly requestId: string }

/** @returns its id @throws CodedError `host_not_found`, `host_ambiguous`; the same with those below */
export async function cordonHost(context: Context, request: HostRequest): Promise<string> {
  return await change(context, request, async (tx, { id }) => {
    if (!(await cordonHostRow(tx, id))) return
    await note(tx, request, id, 'host.cordon')
    tx.wake(wakePlacement)
  })
}

export async function uncordonHost(context: Context, request: HostRequest): Promise<string> {
  return await change(context, request, async (tx, { id }) => {
    if (!(await uncordonHostRow(tx, id))) return
    await note(tx, request, id, 'host.uncordon')
    tx.wake(wakePlacement)
  })
}

export async function drainHost(context: Context, request: HostRequest & { readonly deadlineSeconds: number | undefined }): Promise<string> {
  const { deadlineSeconds } = request
  return await change(context, request, async (tx, { id }) => {
    if (!(await drainHostRow(tx, id, deadlineSeconds))) return
    await note(tx, request, id, 'host.drain', { deadline_seconds: deadlineSeconds ?? LIMITS.drainSecondsDefault })
    tx.wake(wakePlacement, wakeDrain(id))
  })
}

/** @throws CodedError `limit_exceeded` too */
export async function labelHost(context: Context, request: HostRequest & { readonly labels: UpdateHost['labels'] }): Promise<string> {
  return await change(context, request, async (tx, { id }) => {
    const before = await readHostLabels(tx, id)
    const next = changedLabels(before, request.labels)
    const changed = Object.keys(request.labels).filter((key) => labelOf(before, key) !== labelOf(next, key))
    if (changed.length === 0) return
    await setHostLabels(tx, id, next)
    await note(tx, request, id, 'host.label', Object.fromEntries(changed.map((key) => [key, labelOf(next, key)])))
  })
}

/** Any word may be a key, `constructor` too. */
const labelOf = (labels: HostLabels, key: string): string | null => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null)

/**
 * Its lease is taken from it, its epoch is over, and its certificate is revoked. Should its agent still run, it is refused, and freezes what idles in its pools
 * at the deadline of its lease. It comes back by joining anew only.
 * @throws CodedError `host_in_use` too
 */
export async function removeHost(context: Context, request: HostRequest): Promise<void> {
  await change(context, request, async (tx, host) => {
    const { live, wanted } = await endLeaseAndCount(tx, host.id)
    if (live > 0) throw inUse(host, live, wanted)
    await removeHostRow(tx, host.id)
    await revokeIdentity(tx, { role: 'host', name: host.id })
    await note(tx, request, host.id, 'host.remove', { name: host.name })
    // Its open watch looks, and ends.
    tx.wake(wakePlacement, wakePool(host.id), wakeRelease, wakeIdentity({ role: 'host', name: host.id }))
  })
}

function inUse({ name }: Named, live: number, wanted: number): CodedError {
  const holds = `Host ${name} holds ${live} ${live === 1 ? 'sandbox' : 'sandboxes'}`
  const next = wanted > 0 ? ERRORS.host_in_use.next : 'Their end is ordered: remove it when the host has proved that. What it never proves stays with it.'
  return new CodedError('host_in_use', `${holds}. ${next}`)
}

async function change(context: Context, { idOrName }: HostRequest, work: (tx: Transaction, host: Named) => Promise<void>): Promise<string> {
  return await context.db.transaction(async (tx) => {
    const [host, ...others] = await lockHostsNamed(tx, idOrName, NAMED_HOSTS)
    if (host === undefined) throw hostNotFound(idOrName)
    if (others.length > 0 && host.id !== idOrName) throw ambiguousHost(idOrName, [host, ...others])
    await work(tx, host)
    return host.id
  })
}

async function note(tx: Transaction, request: HostRequest, subject: string, action: string, detail: NonNullable<AuditEntry['detail']> = {}): Promise<void> {
  await audit(tx, { tenantId: null, actor: request.principal.actor, action, subject, requestId: request.requestId, detail })
}
