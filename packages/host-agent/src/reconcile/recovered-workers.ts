/** The workers of an agent that has just started: made from the records on disk, once these were compared with the machine. */
import { namesIn, takeCensus } from '../census/take-census.ts'
import { recover } from './recover.ts'
import { SandboxWorkers } from './sandbox-workers.ts'
import type { WorkerWorld } from './worker-world.ts'

export async function recoveredWorkers(world: WorkerWorld): Promise<SandboxWorkers> {
  const workers = new SandboxWorkers(world)
  const { records, lifecycle, pools, log } = world
  const loaded = await records.load()
  for (const sandbox of loaded.damaged) log.error('record.damaged', { sandbox })
  workers.load(loaded.records, loaded.damaged)
  pools.remember(loaded.records.flatMap(({ pool }) => pool ?? []))
  const recovered = await recover(
    workers,
    lifecycle,
    () => namesIn(takeCensus(lifecycle.layout, lifecycle.drivers)),
    log,
    (name) => pools.stray(name),
  )
  log.info('host.recovered', { ...recovered, damaged: loaded.damaged.length })
  return workers
}
