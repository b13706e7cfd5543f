/** A scheduler in a thread of its own, with connections of its own. Places until nothing is left that it could. */
import { parentPort, workerData } from 'node:worker_threads'
import { Database, DEFAULT_TIMING, HostDesk, NO_RULES, realWorld, reconcilePlacement } from '@sandglass/control-plane'

const databaseUrl: string = workerData
const db = new Database({
  url: databaseUrl,
  poolSizes: { requests: 1, hosts: 1, reconcilers: 4 },
  origin: 'bench',
  onCommit: () => undefined,
  onIdleError: () => undefined,
})
const context = { db: db.for('reconcilers'), config: { timing: DEFAULT_TIMING, placement: NO_RULES }, desk: new HostDesk(), world: realWorld }
/** Modules are loaded and connections made before anything is measured. */
await reconcilePlacement(context)
parentPort?.postMessage('ready')
await new Promise((resolve) => void parentPort?.once('message', resolve))
let placed = 0
for (;;) {
  const { actions, nextInMs } = await reconcilePlacement(context)
  placed += actions
  if (nextInMs === undefined) break
  await new Promise((resolve) => setTimeout(resolve, nextInMs))
}
await db.close()
parentPort?.postMessage(placed)
parentPort?.close()
