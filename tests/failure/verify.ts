/** After a crash: takes pictures until everything is as it must be, or the bound for quiet is reached, then looks into the sandboxes. */
import type { CarefulClient } from './careful-client.ts'
import type { InstallationUnderTest } from './installation-under-test.ts'
import { judge, type Picture } from './judge.ts'
import type { Load } from './load.ts'
import { persist, until } from './persist.ts'

/** How long after the last request something may still be on its way. */
const QUIET_LIMIT_MS = 60_000

async function takePicture(installation: InstallationUnderTest, client: CarefulClient): Promise<Picture> {
  const [sandboxes, hosts, quota] = await Promise.all([
    client.api.listSandboxes(`include_ended=true&metadata=${encodeURIComponent(`load=${client.run}`)}`),
    client.api.listHosts(),
    installation.quota(),
  ])
  return { sandboxes, hosts, quota, things: installation.inventory() }
}

/** What is still wrong when the bound is reached; nothing as soon as everything is right. */
export async function convergenceFaults(installation: InstallationUnderTest, client: CarefulClient, limitMs: number = QUIET_LIMIT_MS): Promise<string[]> {
  let lines: string[] = ['no picture could be taken']
  try {
    await until(limitMs, 'convergence', async () => {
      const picture = await persist({ limitMs: QUIET_LIMIT_MS, what: 'taking a picture' }, () => takePicture(installation, client))
      lines = judge(client.ledger, picture)
      return lines.length === 0 ? true : undefined
    })
  } catch (error) {
    if (lines.length === 0) throw error
  }
  return lines
}

/** Everything that was acknowledged, once nothing is in flight any more. */
export async function faultsAfterCrash(installation: InstallationUnderTest, client: CarefulClient, load: Load): Promise<string[]> {
  const lines = await convergenceFaults(installation, client)
  const live = [...client.ledger.creates.values()].filter((id) => !client.ledger.deleteAsked.has(id))
  const looks = [
    ...load.residents.map((resident) => resident.counterFaults()),
    ...load.residents.map((resident) => resident.shellFaults()),
    ...live.map(async (id) => client.contentFaults(await client.persist(`reading ${id}`, () => client.api.getSandbox(id)))),
  ]
  for (const look of await Promise.allSettled(looks)) {
    if (look.status === 'fulfilled') lines.push(...look.value)
    else lines.push(String(look.reason))
  }
  return [...lines, ...client.ledger.faults.splice(0)]
}

/** Once everything was deleted: the books are at zero, and the machine holds only what the installation shares. */
export async function faultsAfterAll(installation: InstallationUnderTest, client: CarefulClient): Promise<string[]> {
  return [...(await convergenceFaults(installation, client)), ...client.ledger.faults.splice(0), ...(await installation.sandboxTraces())]
}
