/** Waits until a node serves. */
import { readFileSync } from 'node:fs'
import { CodedError } from '@sandglass/contract/errors'
import { waitUntil } from '../bounded-wait.ts'
import { paths } from '../installation.ts'
import { processOf } from './node-process.ts'
import { isReady } from './node-readiness.ts'
import type { LabNode, LabPlan } from './plan.ts'

const READY_MS = 90_000
const POLL_MS = 50

/** @throws CodedError `role_not_ready` when it dies or takes too long */
export async function untilReady(plan: LabPlan, node: LabNode, timeoutMs: number = READY_MS): Promise<void> {
  let died = false
  const ready = await waitUntil(
    async () => {
      died = processOf(plan, node) === undefined
      return died || (await isReady(plan, node))
    },
    { timeoutMs, everyMs: POLL_MS },
  )
  if (ready && !died) return
  const log = paths.log(plan.home, node.name)
  throw new CodedError('role_not_ready', `${node.name} ${died ? 'ended' : 'did not serve'} before it was ready; its log, ${log}, ends with: ${lastLine(log)}`)
}

function lastLine(log: string): string {
  try {
    return readFileSync(log, 'utf8').trimEnd().split('\n').at(-1) ?? ''
  } catch {
    return 'nothing'
  }
}
