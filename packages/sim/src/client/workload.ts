/** What clients and operators of a run do, and what they were promised. */
import { CodedError } from '@sandglass/contract'
import type { Mix } from '../faults/mix.ts'
import type { Machine } from '../host/machine.ts'
import type { Snapshot } from '../invariants/snapshot.ts'
import type { Client } from './client.ts'
import { sandboxOf } from './client.ts'

/** What the API has acknowledged. */
export class Ledger {
  readonly created = new Map<string, string>()
  readonly deleted = new Set<string>()

  /** @returns a sentence about a promise that is not kept */
  broken(now: Snapshot): string | undefined {
    const byIntent = new Map<string, string>()
    for (const { id, intent } of now.sandboxes) {
      if (intent === null) continue
      const other = byIntent.get(intent)
      if (other !== undefined) return `create ${intent} made two sandboxes, ${other} and ${id}`
      byIntent.set(intent, id)
    }
    for (const [intent, id] of this.created)
      if (byIntent.get(intent) !== id) return `create ${intent} was acknowledged as ${id} and is ${byIntent.get(intent) ?? 'nowhere'}`
    for (const id of this.deleted) {
      if (now.sandboxes.find((sandbox) => sandbox.id === id)?.desired !== 'deleted') return `the delete of ${id} was acknowledged and is not wanted any more`
    }
    return undefined
  }
}

export const MEMORY_MB = 512

/** The life of one sandbox, until it is deleted or left alone. */
export async function live(client: Client, intent: string, mix: Mix, ledger: Ledger): Promise<void> {
  const { random } = client
  await client.pause(random.between(0, mix.durationMs / 2))
  const id = await create(client, intent, mix, ledger)
  if (id === undefined) return
  const endsMs = client.world.nowMs + random.between(0, mix.durationMs)
  while (client.world.nowMs < endsMs) {
    await client.pause(random.between(0, 2 * mix.paceMs))
    const change = random.pick(['start', 'stop', 'stop', 'start', 'extend', 'delete'] as const)
    if (change === 'delete' && random.chance(0.6)) continue
    const twin = random.chance(0.2) ? act(client, id, random.pick(['start', 'stop', 'delete'] as const), ledger) : undefined
    await act(client, id, change, ledger)
    await twin
    if (ledger.deleted.has(id) && random.chance(0.7)) return
  }
  if (random.chance(0.5)) await act(client, id, 'delete', ledger)
}

async function create(client: Client, intent: string, mix: Mix, ledger: Ledger): Promise<string | undefined> {
  const { random, world } = client
  const key = client.newKey()
  const body = {
    isolation: 'fake',
    resources: { vcpu: 0.5, memory_mb: MEMORY_MB, disk_gb: 1 },
    metadata: { intent },
    ...(random.chance(0.3) ? { name: `name-${intent}` } : {}),
    ...(mix.shortLives && random.chance(0.4) ? { ttl_seconds: random.integer(10, 40) } : {}),
    ...(mix.restarts ? { restart_policy: random.pick(['never', 'on_host_loss', 'always']) } : {}),
  }
  const times = random.chance(0.3) ? 2 : 1
  let made: string | undefined
  for (let time = 0; time < times; time += 1) {
    const waitSeconds = random.pick([undefined, undefined, 5, 20])
    try {
      const answer = await client.ask({ method: 'POST', url: '/v1/sandboxes' }, { key, body, ...(waitSeconds === undefined ? {} : { waitSeconds }) })
      if (answer === undefined) continue
      const { id } = sandboxOf(answer)
      if (made !== undefined && made !== id) world.violate(`the same key made ${made} and ${id}`)
      made = id
      ledger.created.set(intent, id)
    } catch (error) {
      if (!(error instanceof CodedError)) throw error
    }
  }
  return made
}

async function act(client: Client, id: string, change: 'start' | 'stop' | 'extend' | 'delete', ledger: Ledger): Promise<void> {
  const { random } = client
  const waitSeconds = random.pick([undefined, 5, 20])
  const wait = waitSeconds === undefined ? {} : { waitSeconds }
  try {
    switch (change) {
      case 'delete': {
        const answer = await client.ask({ method: 'DELETE', url: `/v1/sandboxes/${id}` }, wait)
        if (answer !== undefined) ledger.deleted.add(id)
        return
      }
      case 'extend':
        await client.ask({ method: 'POST', url: `/v1/sandboxes/${id}/extend` }, { key: client.newKey(), body: { ttl_seconds: random.integer(60, 600) } })
        return
      default:
        await client.ask({ method: 'POST', url: `/v1/sandboxes/${id}/${change}` }, { key: client.newKey(), ...wait })
    }
  } catch (error) {
    if (!(error instanceof CodedError)) throw error
  }
}

/** Until the time is over. */
export async function operate(client: Client, machines: readonly Machine[], mix: Mix, untilMs: number): Promise<void> {
  const { random, world } = client
  while (mix.operatorEveryMs > 0 && world.nowMs < untilMs) {
    await client.pause(random.between(0, 2 * mix.operatorEveryMs))
    const change = random.pick(['cordon', 'uncordon', 'drain'] as const)
    await operateHost(client, random.pick(machines).name, change)
  }
}

export async function uncordon(client: Client, machines: readonly Machine[]): Promise<void> {
  for (const machine of machines) await operateHost(client, machine.name, 'uncordon')
}

async function operateHost(client: Client, host: string, change: 'cordon' | 'uncordon' | 'drain'): Promise<void> {
  const body = change === 'drain' ? { body: { deadline_seconds: client.random.integer(10, 30) } } : {}
  try {
    await client.ask({ method: 'POST', url: `/v1/hosts/${host}/${change}` }, body)
  } catch (error) {
    if (!(error instanceof CodedError)) throw error
  }
}
