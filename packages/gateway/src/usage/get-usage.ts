/** What a sandbox uses: its host says it, and the guest is not asked. */
import { parserOf } from '@sandglass/contract'
import { SandboxUsageSchema } from '@sandglass/contract/usage'
import type { Answer, Call } from '../http/call.ts'

const usage = parserOf(SandboxUsageSchema)

export async function getUsage({ guest, session }: Call): Promise<Answer> {
  return { status: 200, json: await guest.json({ method: 'GET', path: '/v1/usage', isRepeatable: true, signal: session.signal }, usage) }
}
