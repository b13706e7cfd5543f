/**
 * What must be true after a crash, as pure functions over a picture of the installation. Each answers with one line for each thing that is
 * wrong; an empty list is the only good answer.
 */
import type { Amounts, Host } from '@sandglass/contract/host'
import type { Sandbox, SandboxStatus } from '@sandglass/contract/sandbox'
import type { Ledger } from './ledger.ts'
import { differences, type Thing } from './leftovers.ts'

/** What the tenant is charged with, in the units of the API. */
export type Quota = Amounts & { readonly sandboxes: number }

export type Picture = {
  /** Every sandbox of the tenant, also those that have ended. */
  readonly sandboxes: readonly Sandbox[]
  readonly hosts: readonly Host[]
  readonly quota: Quota
  readonly things: readonly Thing[]
}

const SETTLED: ReadonlySet<SandboxStatus> = new Set(['ready', 'terminated', 'failed', 'stopped'])

/** An acknowledged create exists once, under the id that was answered; a key never made two. */
export function judgeCreates(ledger: Ledger, sandboxes: readonly Sandbox[]): string[] {
  const lines: string[] = []
  const made = new Map<string, string[]>()
  for (const sandbox of sandboxes) {
    const key = sandbox.metadata['key']
    if (key === undefined || !ledger.asked.has(key)) lines.push(`${sandbox.id} was made for the key ${key}, which nobody sent`)
    else made.set(key, [...(made.get(key) ?? []), sandbox.id])
  }
  for (const [key, ids] of made) if (ids.length > 1) lines.push(`the key ${key} made ${ids.join(' and ')}`)
  for (const [key, id] of ledger.creates) {
    if (made.get(key)?.includes(id) !== true) lines.push(`${id}, acknowledged for ${key}, is not there`)
  }
  return lines
}

/** An acknowledged delete stays; what nobody deleted is still there and ready. */
export function judgeLives(ledger: Ledger, sandboxes: readonly Sandbox[]): string[] {
  const lines: string[] = []
  for (const { id, desired, status, status_reason: reason } of sandboxes) {
    if (!SETTLED.has(status)) lines.push(`${id} is still ${status} (desired ${desired})`)
    if (ledger.deleteAcknowledged.has(id)) {
      if (desired !== 'deleted' || status !== 'terminated') lines.push(`${id} was deleted and is ${status} (desired ${desired})`)
    } else if (ledger.deleteAsked.has(id)) {
      // Its answer was lost: it may be deleted or not.
    } else if (desired !== 'running' || status !== 'ready')
      lines.push(`${id} was never deleted and is ${status} (desired ${desired}): ${reason ?? 'no reason'}`)
  }
  return lines
}

const runs = (sandbox: Sandbox): boolean => sandbox.desired === 'running' || (sandbox.status !== 'terminated' && sandbox.status !== 'failed')

function totalOf(sandboxes: readonly Sandbox[]): Quota {
  const total = { sandboxes: 0, vcpu: 0, memory_mb: 0, disk_gb: 0 }
  for (const { resources } of sandboxes) {
    total.sandboxes += 1
    total.vcpu = Math.round((total.vcpu + resources.vcpu) * 1_000) / 1_000
    total.memory_mb += resources.memory_mb
    total.disk_gb += resources.disk_gb
  }
  return total
}

const textOf = (quota: Quota): string => `${quota.sandboxes} sandboxes, ${quota.vcpu} vCPU, ${quota.memory_mb} MiB, ${quota.disk_gb} GiB`

/** What is reserved and charged is what the live ones have, no more and no less. */
export function judgeAmounts(picture: Picture): string[] {
  const due = textOf(totalOf(picture.sandboxes.filter(runs)))
  const reserved = { sandboxes: 0, vcpu: 0, memory_mb: 0, disk_gb: 0 }
  for (const host of picture.hosts) {
    reserved.sandboxes += host.sandboxes
    reserved.vcpu += host.reserved.vcpu
    // What pools hold belongs to nobody yet.
    reserved.memory_mb += host.reserved.memory_mb - host.pool.memory_mb
    reserved.disk_gb += host.reserved.disk_gb - host.pool.disk_gb
  }
  const lines: string[] = []
  if (textOf(reserved) !== due) lines.push(`hosts have reserved ${textOf(reserved)}; due is ${due}`)
  if (textOf(picture.quota) !== due) lines.push(`the quota says ${textOf(picture.quota)}; due is ${due}`)
  return lines
}

export function judgeMachine(picture: Picture): string[] {
  return differences(picture.things, new Set(picture.sandboxes.filter((sandbox) => sandbox.status === 'ready').map((sandbox) => sandbox.id)))
}

export function judge(ledger: Ledger, picture: Picture): string[] {
  return [...judgeCreates(ledger, picture.sandboxes), ...judgeLives(ledger, picture.sandboxes), ...judgeAmounts(picture), ...judgeMachine(picture)]
}
