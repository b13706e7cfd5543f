/**
 * Applies one choice of placement: the sandbox moves on, the assignment is made (with a unit of the host's pool, if the choice says so), and the host's
 * room is reserved, all or nothing. The statements follow one another without waiting, since each carries its own guard; what the answers say decides
 * between commit and rollback.
 */
import { newAssignmentId } from '@sandglass/contract'
import type { Context } from '../context.ts'
import type { Placement } from '../domain/placement/plan.ts'
import { wakeHost, wakePlanner } from '../events/wake-bus.ts'
import { ASSIGNMENT_INDEXES, insertAssignment } from '../store/assignments.ts'
import { type Database, Overtaken, type Transaction, together, violates } from '../store/database.ts'
import { type DueOrder, reserveOnHost } from '../store/hosts.ts'
import { moveSandbox } from '../store/sandboxes.ts'

export type Place = Extract<Placement, { kind: 'place' }>
type PlaceContext = Pick<Context, 'world' | 'desk'>

/** @returns false when something overtook the choice */
export async function applyPlacement(context: PlaceContext & { readonly db: Database }, choice: Place): Promise<boolean> {
  let order: DueOrder
  try {
    order = await context.db.transaction((tx) => placeSandbox(tx, context, choice))
  } catch (error) {
    if (error instanceof Overtaken || ASSIGNMENT_INDEXES.some((index) => violates(error, index))) return false
    throw error
  }
  await context.world.faults.reach('place.committed')
  context.desk.hand(choice.hostId, order)
  return true
}

/**
 * @returns the start that is due once this is committed
 * @throws Overtaken
 */
export async function placeSandbox(tx: Transaction, context: PlaceContext, choice: Place): Promise<DueOrder> {
  const { sandboxId, generation, hostId, epoch, need, poolKey } = choice
  // An open watch of this process is handed the order; any other reads it.
  if (!context.desk.watches(hostId)) tx.wake(wakeHost(hostId, sandboxId))
  if (poolKey !== null) tx.wake(wakePlanner)
  // What a unit holds is reserved already.
  const more = poolKey === null ? need : { vcpuMilli: need.vcpuMilli, memoryMb: 0, diskGb: 0 }
  const [moved, inserted] = await together([
    // guard: place.gen
    moveSandbox(tx, { id: sandboxId, generation }, 'place', { hostId }),
    // guard: place.one, claim.tgt, claim.epoch
    insertAssignment(tx, { id: newAssignmentId(context.world.random), sandboxId, hostId, epoch, poolKey }),
    // guard: place.cap, claim.cordon
    reserveOnHost(tx, hostId, more),
  ])
  if (moved === undefined) throw new Overtaken()
  return { ...moved, ...inserted, sandbox_id: sandboxId, assignment_generation: moved.generation, assignment_epoch: inserted.epoch }
}
