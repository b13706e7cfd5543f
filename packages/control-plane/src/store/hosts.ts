/** Hosts, their leases and what they offer. */
import type { DriverProbe, HostLabels, HostStatus, RegisterHost } from '@sandglass/contract'
import type { ExactAmounts } from '../domain/amounts.ts'
import type { HostOffer } from '../domain/placement/plan.ts'
import { orOvertaken, type Queryable, type Transaction } from './database.ts'
import type { PagePosition, SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

type Capacity = {
  readonly vcpu_milli_capacity: number
  readonly vcpu_milli_reserved: number
  readonly memory_mb_capacity: number
  readonly memory_mb_reserved: number
  readonly disk_gb_capacity: number
  readonly disk_gb_reserved: number
  readonly cordoned: boolean
}

type OfferRow = Capacity & {
  readonly id: string
  readonly name: string
  readonly region: string
  readonly zone: string | null
  readonly class: string | null
  readonly drivers: readonly DriverProbe[]
  readonly templates: readonly { readonly name: string; readonly digest: string }[]
  readonly epoch: number
  readonly lost: boolean
}

export type HostRow = Capacity & {
  readonly id: string
  readonly name: string
  readonly region: string
  readonly status: HostStatus
  readonly version: string
  readonly drivers: DriverProbe[]
  readonly labels: HostLabels
  readonly drain_started_at: Date | null
  readonly drain_deadline_at: Date | null
  /** The deadline has passed; null without a drain. */
  readonly drain_over: boolean | null
  readonly created_at: Date
  readonly created_micros: number
  readonly epoch: number
  readonly renewed_at: Date | null
  /** By the database's clock. */
  readonly lease_age_seconds: number | null
  /** By a boot of it. */
  readonly held: boolean
  /** No renewal for a lease. */
  readonly late: boolean
  readonly fenced_at: Date | null
  readonly lost: boolean
  readonly sandboxes: number
  /** Of those, on a host that is drained: ready, and not ordered to end. */
  readonly may_finish: number
  readonly pool_target: number
  readonly pool_held: number
  readonly pool_memory_mb: number
  readonly pool_disk_gb: number
}

export type Lease = { readonly epoch: number; readonly seq: number }

/** `held`: by a boot of the host; by none when the host was removed or fenced. */
export type HeldLease = Lease & { readonly held: boolean }

/** One order that is due, or a row of nulls that carries the lease alone. */
export type DueOrderRow = Lease &
  (
    | { readonly sandbox_id: null }
    | (Pick<
        SandboxRow,
        | 'generation'
        | 'observed'
        | 'driver'
        | 'template_name'
        | 'template_digest'
        | 'network_mode'
        | 'env'
        | 'traceparent'
        | 'vcpu_milli'
        | 'memory_mb'
        | 'disk_gb'
      > & {
        readonly sandbox_id: string
        readonly assignment_generation: number
        readonly assignment_epoch: number
        /** The pool as the claim left it; nulls for an assignment that took no unit. */
        readonly pool_key: string | null
        readonly pool_version: number | null
        readonly pool_target: number | null
      })
  )

/** An order, without the row that only carries the lease. */
export type DueOrder = Extract<DueOrderRow, { readonly sandbox_id: string }>

const reserve = statement('hosts/reserve')
const offers = statement<OfferRow>('hosts/offers')
const list = statement<HostRow>('hosts/list')
const insertFirst = statement('hosts/insert-first')
const register = statement<Lease>('hosts/register')
const updateOffer = statement('hosts/update-offer')
const renew = statement<Lease>('hosts/renew')
const lease = statement<HeldLease>('hosts/lease')
const dueOrders = statement<DueOrderRow>('hosts/due-orders')

export const capacityOfRow = (row: Capacity): { capacity: ExactAmounts; reserved: ExactAmounts } => ({
  capacity: { vcpuMilli: row.vcpu_milli_capacity, memoryMb: row.memory_mb_capacity, diskGb: row.disk_gb_capacity },
  reserved: { vcpuMilli: row.vcpu_milli_reserved, memoryMb: row.memory_mb_reserved, diskGb: row.disk_gb_reserved },
})

/** @throws Overtaken when it does not fit (any more) or the host is cordoned; the transaction is broken then */
export async function reserveOnHost(tx: Transaction, hostId: string, amounts: ExactAmounts): Promise<void> {
  await orOvertaken(tx.run(reserve, [hostId, amounts.vcpuMilli, amounts.memoryMb, amounts.diskGb]))
}

export async function hostOffers(db: Queryable, leaseMs: number): Promise<HostOffer[]> {
  const rows = await db.run(offers, [leaseMs])
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    region: row.region,
    zone: row.zone,
    hostClass: row.class,
    epoch: row.epoch,
    drivers: row.drivers.filter((driver) => driver.proved).map((driver) => driver.name),
    templateDigests: row.templates.map((template) => template.digest),
    ...capacityOfRow(row),
    cordoned: row.cordoned,
    lost: row.lost,
  }))
}

export type HostFilter = {
  readonly idOrName?: string
  readonly after?: PagePosition | undefined
  readonly label?: Readonly<Record<string, string>> | undefined
  readonly status?: HostStatus | undefined
  readonly limit: number
}

export const listHosts = async (db: Queryable, leaseMs: number, find: HostFilter): Promise<HostRow[]> =>
  await db.run(list, [
    leaseMs,
    find.idOrName ?? null,
    find.after?.micros ?? null,
    find.after?.id ?? null,
    find.limit,
    find.label === undefined ? null : JSON.stringify(find.label),
    find.status ?? null,
  ])

export async function ensureHost(tx: Transaction, host: RegisterHost, region: string): Promise<void> {
  await tx.run(insertFirst, [host.host_id, host.name, region, host.version])
}

/** @returns undefined when the epoch is not the expected one */
export const registerLease = async (tx: Transaction, host: RegisterHost): Promise<Lease | undefined> =>
  (await tx.run(register, [host.host_id, host.expected_epoch, host.boot_id]))[0]

export async function updateHostOffer(tx: Transaction, host: RegisterHost, offered: ExactAmounts): Promise<void> {
  await tx.run(updateOffer, [
    host.host_id,
    host.name,
    host.version,
    JSON.stringify(host.drivers),
    JSON.stringify(host.templates),
    host.data_plane_url,
    offered.vcpuMilli,
    offered.memoryMb,
    offered.diskGb,
  ])
}

/** @returns undefined when that boot does not hold that epoch */
export const renewLease = async (db: Queryable, hostId: string, epoch: number, bootId: string): Promise<Lease | undefined> =>
  (await db.run(renew, [hostId, epoch, bootId]))[0]

export const readLease = async (db: Queryable, hostId: string): Promise<HeldLease | undefined> => (await db.run(lease, [hostId]))[0]

/** @returns at least one row while the host holds its lease */
export const readDueOrders = async (db: Queryable, hostId: string, sandboxIds: readonly string[] | undefined): Promise<DueOrderRow[]> =>
  await db.run(dueOrders, [hostId, sandboxIds === undefined ? null : [...sandboxIds]])
