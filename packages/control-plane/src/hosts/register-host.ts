/**
 * A host joins, or comes back. It takes a new epoch only when nothing runs on it, so that epoch proves the end of everything it held before (release by
 * fence). A host that was removed has joined anew before, and stays cordoned until an operator wants it again. An agent that restarted on the same boot repeats its last registration: it keeps its epoch and what it runs, and tells where it now listens.
 */
import type { RegisteredHost, RegisterHost } from '@sandglass/contract'
import { claimText, PeerRefused } from '@sandglass/identity'
import type { Context } from '../context.ts'
import { exactAmounts } from '../domain/amounts.ts'
import { wakePlacement } from '../events/wake-bus.ts'
import type { Machine } from '../identities/peer-gate.ts'
import { releaseFenced } from '../services/release-fenced.ts'
import { audit } from '../store/audit-log.ts'
import { readHostLabels, returnHost, setHostLabels } from '../store/host-changes.ts'
import { ensureHost, readLease, registerLease, updateHostOffer } from '../store/hosts.ts'
import { holdsIdentity, takeTokenLabels } from '../store/identities.ts'
import { closeUsageOfEpochs } from '../store/usage-intervals.ts'
import { staleEpoch } from './stale-epoch.ts'

/** @throws CodedError `stale_epoch`; PeerRefused when the identity was revoked meanwhile */
export async function registerHost(context: Context, host: RegisterHost, machine: Machine): Promise<RegisteredHost> {
  const db = context.db.for('hosts')
  const lease = await db.transaction(async (tx) => {
    await ensureHost(tx, host, context.config.region)
    const returns = await returnHost(tx, host.host_id)
    // Behind the host's own row, which a removal locks first.
    if (!(await holdsIdentity(tx, machine))) throw new PeerRefused('revoked', claimText(machine))
    const registered = await registerLease(tx, host)
    if (registered === undefined) throw staleEpoch(host.expected_epoch, (await readLease(tx, host.host_id))?.epoch ?? 0)
    // Nothing runs there any more.
    await closeUsageOfEpochs(tx, host.host_id)
    const labels = await takeTokenLabels(tx, host.host_id)
    if (labels !== undefined) await setHostLabels(tx, host.host_id, { ...(await readHostLabels(tx, host.host_id)), ...labels })
    await audit(tx, {
      tenantId: null,
      actor: { type: 'host', id: host.host_id },
      action: 'host.register',
      subject: host.host_id,
      detail: { epoch: registered.epoch, boot_id: host.boot_id, version: host.version, ...(returns ? { was_removed: true } : {}) },
    })
    return registered
  })
  await context.world.faults.reach('register.committed')
  // In transactions of their own: they lock sandboxes before the lease. Killed in between, a sweep goes on.
  let mayBeMore = true
  while (mayBeMore) mayBeMore = (await releaseFenced({ config: context.config, db }, host.host_id)).mayBeMore
  await db.transaction(async (tx) => {
    await updateHostOffer(tx, host, offered(host, context.config.cpuOvercommit))
    tx.wake(wakePlacement)
  })
  return { epoch: lease.epoch, seq: lease.seq, ticket_keys: context.signer.publicKeys, renew_period_ms: context.config.timing.renewPeriodMs }
}

/** Overcommit is the operator's number: a host's processors are offered several times, its memory once. */
const offered = (host: RegisterHost, cpuOvercommit: number) => exactAmounts({ ...host.capacity, vcpu: host.capacity.vcpu * cpuOvercommit })
