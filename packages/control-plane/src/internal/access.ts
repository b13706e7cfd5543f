/**
 * Who may reach which runtime: the answer to a gateway's question, from one read. guard: route.lease
 *
 * The question is also what tells that a sandbox is used. A gateway asks before it lets anybody in, remembers the answer for `accessCacheMs`, and asks again
 * about everything that is open before its route ends, which is within the host's lease; so what is in use has been asked about within `leaseMs`, and the
 * shortest idle timeout is twice that. The note is no part of the answer: nobody waits for it, and the next question makes good for one that was lost.
 */
import { type Access, type AccessQuestion, CodedError, type Route } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { readAccess } from '../store/routes.ts'
import { touchSandbox } from '../store/sandboxes.ts'

/** @throws CodedError `unauthenticated`; `sandbox_not_found`, also for someone else's */
export async function answerAccess({ db, config, leases, log }: Context, question: AccessQuestion): Promise<Access> {
  const leaseLeft = leases.measure()
  const read = await readAccess(db, question.key_sha256, question.sandbox_id, config.timing.leaseMs)
  if (read === 'no_key') throw new CodedError('unauthenticated')
  if (read === 'no_sandbox') throw new CodedError('sandbox_not_found')
  const { lease, toTouch } = read
  const leftMs = lease === null ? undefined : leaseLeft(lease, config.timing.leaseMs)
  const access = { ...read.access, route: routeWithin(read.access.route, leftMs) }
  if (toTouch && access.route !== null) {
    const used = { id: question.sandbox_id, generation: access.route.generation }
    db.transaction((tx) => touchSandbox(tx, used), { durable: false }).catch((error: unknown) =>
      log.debug({ sandbox: used.id, err: error }, 'that a sandbox is used was not noted'),
    )
  }
  return access
}

/** guard: route.seen: valid no longer than the observer of this process has seen the lease to last, by whatever clock the database tells otherwise */
function routeWithin(route: Route | null, leftMs: number | undefined): Route | null {
  if (route === null || leftMs === undefined || route.valid_for_ms <= leftMs) return route
  return leftMs <= 0 ? null : { ...route, valid_for_ms: leftMs }
}
