/** Ends every sandbox through the API, as its operator would. */
import { readFileSync } from 'node:fs'
import { LIMITS } from '@sandglass/contract/limits'
import { parserOf } from '@sandglass/contract/schema'
import Type from 'typebox'
import { waitUntil } from './bounded-wait.ts'
import { paths } from './installation.ts'

const CALL_MS = 5_000
const POLL_MS = 100

const page = parserOf(Type.Object({ items: Type.Array(Type.Object({ id: Type.String({ pattern: '^[a-z0-9]{4,64}$' }) })) }))

async function listed(api: string, headers: Record<string, string>): Promise<string[]> {
  const response = await fetch(`${api}/v1/sandboxes?limit=${LIMITS.pageItems}`, { headers, signal: AbortSignal.timeout(CALL_MS) })
  if (response.status !== 200) throw new Error(`the API answered ${response.status}`)
  return page.parse(await response.json()).items.map((item) => item.id)
}

/**
 * Deletes page after page until none is left or the time is up.
 * @returns how many were asked to end, or undefined when the API did not answer
 */
export async function endSandboxes(home: string, api: string, timeoutMs: number): Promise<number | undefined> {
  const asked = new Set<string>()
  try {
    const headers = { authorization: `Bearer ${readFileSync(paths.adminKey(home), 'utf8').trim()}` }
    await waitUntil(
      async () => {
        const ids = await listed(api, headers)
        for (const id of ids.filter((each) => !asked.has(each))) {
          await fetch(`${api}/v1/sandboxes/${id}`, { method: 'DELETE', headers, signal: AbortSignal.timeout(CALL_MS) })
          asked.add(id)
        }
        return ids.length === 0
      },
      { timeoutMs, everyMs: POLL_MS },
    )
    return asked.size
  } catch {
    return undefined
  }
}
