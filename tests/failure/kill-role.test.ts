/**
 * SIGKILL of each role at seeded moments while a load runs. The supervisor starts the role again by itself; afterwards everything that was
 * acknowledged is there, everything that lived lives, and nothing is left over.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CarefulClient } from './careful-client.ts'
import { InstallationUnderTest } from './installation-under-test.ts'
import { Ledger } from './ledger.ts'
import { Load } from './load.ts'
import { momentsOfRun } from './moments.ts'
import { killRole, livingRole, ROLES, type Role, replaced } from './roles.ts'
import { randomOf } from './seed.ts'
import { faultsAfterAll, faultsAfterCrash } from './verify.ts'

/** The load runs so long before a kill, at most. */
const MOMENT_WITHIN_MS = 1_200
/** So many of the successors are killed as well, while they are still finding out what was. */
const WHILE_RECOVERING = 0.25
const RECOVERY_WITHIN_MS = 1_000
const RESTART_LIMIT_MS = 60_000
const ROLE_LIMIT_MS = 15 * 60_000
const SIZE = { residents: 2, workers: 2 }
/** Without these, sessions that stand go on. */
const NOT_ON_THE_ROAD: ReadonlySet<Role> = new Set<Role>(['control-plane', 'postgres'])

const installation = await InstallationUnderTest.start()
after(() => installation[Symbol.asyncDispose]())
const moments = momentsOfRun()

async function crash(role: Role, moment: number, client: CarefulClient, load: Load): Promise<void> {
  const random = randomOf(moments.seed, role, moment)
  // The moment is the point of the test: nothing is waited for.
  await delay(random.integer(MOMENT_WITHIN_MS))
  const killed = killRole(installation.home, role)
  const lines: string[] = []
  if (NOT_ON_THE_ROAD.has(role)) lines.push(...(await Promise.all(load.residents.map((resident) => resident.openTerminalFaults()))).flat())
  const successor = await replaced(installation.home, role, killed, RESTART_LIMIT_MS)
  if (random.chance(WHILE_RECOVERING)) {
    await delay(random.integer(RECOVERY_WITHIN_MS))
    // It may have ended by itself already, as Postgres does while processes of the killed one still hold its memory.
    if (livingRole(installation.home, role)?.startTime === successor.startTime) killRole(installation.home, role)
    await replaced(installation.home, role, successor, RESTART_LIMIT_MS)
  }
  await load.pause()
  lines.push(...(await faultsAfterCrash(installation, client, load)))
  assert.deepEqual(lines, [], `moment ${moment} of ${role}; ${moments.again(moment)}\n${lines.join('\n')}\n${installation.lastWords(role)}`)
  load.resume()
}

describe('kill -9 at seeded moments under load', () => {
  for (const role of ROLES) {
    test(`${role}, ${moments.numbers.length} moments, seed ${moments.seed}`, { timeout: ROLE_LIMIT_MS }, async (context) => {
      const client = new CarefulClient(installation.api, new Ledger(), `${role}-${moments.seed}-${process.pid}`)
      {
        await using load = await Load.start(client, `${moments.seed}/${role}`, SIZE)
        for (const moment of moments.numbers) await crash(role, moment, client, load)
      }
      assert.deepEqual(await faultsAfterAll(installation, client), [])
      context.diagnostic(`${client.ledger.operations} acknowledged operations, ${client.ledger.creates.size} sandboxes`)
    })
  }

  test('no record of an ended sandbox stays for good', { timeout: 120_000 }, async () => {
    assert.deepEqual(await installation.lastingTraces(), [])
  })
})
