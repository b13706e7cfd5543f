/**
 * The gate behind every burst: the control plane and the host agent are killed while everything runs. Then nothing may be there that nobody
 * knows (an orphan) and nothing may be known that is not there (a phantom row). No speed counts unless it holds.
 */

import type { Sandbox } from '@sandglass/sdk'
import { until } from '../../tests/e2e/bounds.ts'
import type { Installation } from '../../tests/e2e/installation.ts'
import { allSentries } from '../../tests/e2e/sentries.ts'
import { inventory } from '../../tests/failure/leftovers.ts'
import { booksOf, readQuota } from '../../tests/failure/quota.ts'
import { killRole, replaced } from '../../tests/failure/roles.ts'
import { inFlight } from '../measure/interleave.ts'
import { BOOT_ID_COMMAND, type Freshness } from './freshness.ts'

const BACK_MS = 60_000
const GONE_MS = 60_000
const EXECS_IN_FLIGHT = 8
const DELETES_IN_FLIGHT = 16

/** Sandboxes that the API calls ready, once it and the host are back. */
async function readyAgain(installation: Installation, count: number): Promise<Set<string>> {
  return until(BACK_MS, `${count} ready sandboxes after the crash`, async () => {
    const all = await installation.sandboxes().catch(() => undefined)
    const ready = all?.filter(({ status }) => status === 'ready')
    return ready !== undefined && ready.length >= count ? new Set(ready.map(({ id }) => id)) : undefined
  })
}

/** @returns one line for each thing that is wrong */
export async function crashGate(installation: Installation, alive: readonly Sandbox[], freshness: Freshness): Promise<string[]> {
  const { home } = installation
  const before = { controlPlane: killRole(home, 'control-plane'), hostAgent: killRole(home, 'host-agent') }
  await replaced(home, 'control-plane', before.controlPlane, BACK_MS)
  await replaced(home, 'host-agent', before.hostAgent, BACK_MS)
  const ready = await readyAgain(installation, alive.length)
  const known = new Set(alive.map(({ id }) => id))
  const wrong = [...ready].filter((id) => !known.has(id)).map((id) => `phantom row: ${id}`)
  wrong.push(...[...known].filter((id) => !ready.has(id)).map((id) => `lost: ${id}`))
  await inFlight(
    EXECS_IN_FLIGHT,
    alive.map((sandbox) => async () => {
      try {
        const { stdout } = await sandbox.exec(BOOT_ID_COMMAND)
        freshness.told(sandbox.id, stdout)
      } catch (error) {
        wrong.push(`not the same any more: ${sandbox.id}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }),
  )
  return wrong
}

/** Ends them, and says what is still there when everything should be gone. */
export async function endAll(installation: Installation, alive: readonly Sandbox[], poolMembers: number): Promise<string[]> {
  const refused: string[] = []
  await inFlight(
    DELETES_IN_FLIGHT,
    alive.map((sandbox) => async () => {
      try {
        await sandbox.delete()
      } catch (error) {
        refused.push(`not deleted: ${sandbox.id}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }),
  )
  const ids = new Set<string>(alive.map(({ id }) => id))
  let wrong: string[] = []
  await until(GONE_MS, 'nothing of the burst is left', async () => {
    const rows = (await installation.sandboxes()).map(({ id }) => `phantom row: ${id}`)
    const things = inventory({ home: installation.home })
      .filter(({ kind, sandbox }) => kind !== 'record' && sandbox !== null && ids.has(sandbox))
      .map(({ kind, what }) => `orphan: ${kind} ${what}`)
    const { sandboxes } = await readQuota(booksOf(installation.home))
    const charged = sandboxes === 0 ? [] : [`charged for ${sandboxes} sandboxes that are gone`]
    const surplus = allSentries(installation.home).length - poolMembers
    wrong = [...rows, ...things, ...charged, ...(surplus > 0 ? [`orphan: ${surplus} sentries beyond the pool`] : [])]
    return wrong.length === 0
  }).catch((error: unknown) => {
    if (wrong.length === 0) wrong = [error instanceof Error ? error.message : String(error)]
  })
  return [...refused, ...wrong]
}
