/** A scheduler in a thread of its own, with connections of its own, as one more control plane has them. Places until it is told to stop; one that fails ends. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Config } from '../src/config.ts'
import { HostDesk } from '../src/hosts/host-desk.ts'
import { realWorld } from '../src/index.ts'
import { type PlacementContext, reconcilePlacement } from '../src/reconcilers/placement.ts'
import { Database } from '../src/store/database.ts'
import { seededBytes } from './seeded-bytes.ts'

export type SchedulerOrder = {
  readonly databaseUrl: string
  readonly config: Pick<Config, 'timing' | 'placement'>
  readonly seed: number
}

/** What it tells when it has stopped. */
export type SchedulerTold = { readonly placed: number; readonly runs: number }

const { databaseUrl, config, seed }: SchedulerOrder = workerData
const db = new Database({
  url: databaseUrl,
  poolSizes: { requests: 1, hosts: 1, reconcilers: 4 },
  origin: `scheduler-${seed}`,
  onCommit: () => undefined,
  onIdleError: () => undefined,
})
const context = { db: db.for('reconcilers'), config, desk: new HostDesk(), world: { ...realWorld, random: seededBytes(seed) } }

let stopped = false
parentPort?.on('message', () => {
  stopped = true
})
let placed = 0
let runs = 0
while (!stopped) {
  const outcome = await reconcilePlacement(context satisfies PlacementContext)
  placed += outcome.actions
  runs += 1
  await new Promise((resolve) => setTimeout(resolve, Math.min(outcome.nextInMs ?? 100, 100)))
}
await db.close()
parentPort?.postMessage({ placed, runs } satisfies SchedulerTold)
parentPort?.close()
