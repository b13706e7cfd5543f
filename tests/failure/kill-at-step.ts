/**
 * LI1: death at every named step of the host agent and of the control plane. Each role lists its points in one file, so a new point is tried by itself. A
 * create, a command and a delete go through the point, and where it is theirs a stop and a start; after the restart they have happened once, and nothing is
 * left over. A file of its own for each way to start, so that the two share the time.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CRASH_POINTS as CONTROL_PLANE_POINTS } from '../../packages/control-plane/src/faults/crash-point.ts'
import { CRASH_POINTS as HOST_AGENT_POINTS } from '../../packages/host-agent/src/faults/crash-point.ts'
import { CarefulClient, CONTENT_PATH } from './careful-client.ts'
import { RoleWatch, restartArmed } from './crash-seam.ts'
import { InstallationUnderTest } from './installation-under-test.ts'
import { Ledger } from './ledger.ts'
import { wholeMembers } from './leftovers.ts'
import { Load } from './load.ts'
import { until } from './persist.ts'
import { killRole, type Role } from './roles.ts'
import { randomOf } from './seed.ts'
import { faultsAfterAll, faultsAfterCrash } from './verify.ts'

const POINT_LIMIT_MS = 240_000
const DEATH_LIMIT_MS = 60_000
const POOL_LIMIT_MS = 60_000
/** The killed one, the one that died at its point, and the one that lives. */
const LIVES = 3

const OF_POOLS = /^pool\./
/** The control plane's, of requests to stop and to start. */
const OF_RUNS = /^(stop|start)\.(open|committed)$/
/** The control plane's, of hosts that are lost, which none is here; `control-plane/test/lost-host` fails there. */
const OF_FENCES = /^fence\./

export type Starts = {
  readonly how: string
  /** So many stand ready whenever a point is passed. */
  readonly members: number
  readonly env: Readonly<Record<string, string>>
}

export function killAtEveryStep({ how, members, env }: Starts): void {
  describe(`LI1 kill -9 at every named step of ${how}`, () => {
    let installation: InstallationUnderTest
    let client: CarefulClient
    let load: Load
    before(async () => {
      installation = await InstallationUnderTest.start(env)
      client = new CarefulClient(installation.api, new Ledger(), `steps-${process.pid}-${members}`)
      load = await Load.start(client, 'steps', { residents: 1, workers: 0 })
    })
    after(async () => {
      await using _ = installation
      await load[Symbol.asyncDispose]()
      assert.deepEqual(await faultsAfterAll(installation, client), [])
    })

    async function passThrough(role: Role, point: string): Promise<void> {
      using watch = new RoleWatch(installation.home, role)
      await restartArmed(installation.home, role, point)
      // A host registers only when its agent starts.
      if (point.startsWith('register.')) killRole(installation.home, 'host-agent')
      await until(POOL_LIMIT_MS, 'the pool being filled', () => (wholeMembers(installation.inventory()).size >= members ? true : undefined))
      const content = randomOf('steps', role, point).bytes(10_000)
      const key = `${client.run}-${role}-${point}`
      const where = await client.create(key)
      await client.write(where, CONTENT_PATH, content)
      await client.execute(where, `${key}-sum`, content)
      if (OF_RUNS.test(point)) await client.stopAndStart(key, where.id)
      await client.delete(where.id)
      await until(DEATH_LIMIT_MS, `${role} dying at ${point}`, () => (watch.lives >= LIVES ? true : undefined))
      assert.deepEqual(await faultsAfterCrash(installation, client, load), [])
    }

    for (const point of HOST_AGENT_POINTS.filter((name) => members > 0 || !OF_POOLS.test(name)))
      test(`host-agent at ${point}`, { timeout: POINT_LIMIT_MS }, () => passThrough('host-agent', point))
    for (const point of CONTROL_PLANE_POINTS.filter((name) => !OF_FENCES.test(name)))
      test(`control-plane at ${point}`, { timeout: POINT_LIMIT_MS }, () => passThrough('control-plane', point))
  })
}
