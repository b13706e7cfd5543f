/**
 * Fences one host: its epoch is over, in one transaction with the audit row and the end of all usage there. What the epoch held is released behind it, one
 * sandbox at a time (reconcilers/release.ts): a stable fact leads there, so whoever is first does it, and a crash in between is only a delay.
 */

import type { LeaseSeen } from '../domain/host/fencing.ts'
import { wakeFenced, wakePlacement, wakePool, wakeRelease } from '../events/wake-bus.ts'
import { audit } from '../store/audit-log.ts'
import type { Transaction } from '../store/database.ts'
import { fenceLease } from '../store/leases.ts'
import { closeUsageOfEpochs } from '../store/usage-intervals.ts'

/** @returns false when the host has gone on since it was seen */
export async function fenceHost(tx: Transaction, seen: LeaseSeen): Promise<boolean> {
  const epoch = await fenceLease(tx, seen)
  if (epoch === undefined) return false
  await closeUsageOfEpochs(tx, seen.hostId)
  await audit(tx, {
    tenantId: null,
    actor: { type: 'system', id: 'host-lease-sweeper' },
    action: 'host.fence',
    subject: seen.hostId,
    detail: { epoch: seen.epoch, seq: seen.seq },
  })
  // Its open watch looks, and ends; gateways close what leads there; what it held is released.
  tx.wake(wakePool(seen.hostId), wakeFenced(seen.hostId, epoch), wakeRelease, wakePlacement)
  return true
}
