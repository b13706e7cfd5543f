/**
 * Applies choices of placement: the sandboxes move on, their assignments are made (with a unit of the host's pool, if the choice says so), and the host's
 * room is reserved, all or nothing. The statements follow one another without waiting, since each carries its own guard; what the answers say decides
 * between commit and rollback.
 */
import { newAssignmentId } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { type ExactAmounts, plus, ZERO } from '../domain/amounts.ts'
import type { Place } from '../domain/placement/plan.ts'
import { wakeHost, wakePlanner } from '../events/wake-bus.ts'
import { ASSIGNMENT_INDEXES, insertAssignment } from '../store/assignments.ts'
import { Overtaken, type Transaction, together, violates } from '../store/database.ts'
import { type DueOrder, reserveOnHost } from '../store/hosts.ts'
import { moveSandbox } from '../store/sandboxes.ts'

type PlaceContext = Pick<Context, 'world' | 'desk'>

/** A start that is due once its transaction is committed. */
export type Placed = { readonly hostId: string; readonly due: DueOrder }

/**
 * Those of several choices, in a transaction that has their sandboxes locked, that nothing has overtaken. One host after the other in the order of their ids,
 * as every scheduler does, so that none waits for another in a circle; of a host all choices at once, and one by one if something has overtaken one of them.
 * Then the host's capacity is locked with the first, and no second pool of it may be behind that: what would claim from one is left to the next look.
 */
export async function placeEach(tx: Transaction, context: PlaceContext, choices: readonly Place[]): Promise<Placed[]> {
  const byHost = [...Map.groupBy(choices, ({ hostId }) => hostId)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const placed: Placed[] = []
  for (const [hostId, ofHost] of byHost) {
    const orders = await unlessOvertaken(tx, () => placeOnHost(tx, context, hostId, ofHost))
    if (orders === undefined && ofHost.length > 1) {
      let claimed: string | null = null
      for (const choice of ofHost) {
        if (claimed !== null && choice.poolKey !== null && choice.poolKey !== claimed) continue
        const order = await unlessOvertaken(tx, () => placeOnHost(tx, context, hostId, [choice]))
        if (order !== undefined) claimed ??= choice.poolKey ?? HELD
        placed.push(...dueOn(hostId, order))
      }
    } else placed.push(...dueOn(hostId, orders))
  }
  return placed
}

/** No pool's key: the capacity is locked, and no pool was. */
const HELD = ''

const dueOn = (hostId: string, orders: readonly DueOrder[] = []): Placed[] => orders.map((due) => ({ hostId, due }))

async function unlessOvertaken<T>(tx: Transaction, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await tx.nested(work)
  } catch (error) {
    if (isOvertaken(error)) return undefined
    throw error
  }
}

const isOvertaken = (error: unknown): boolean => error instanceof Overtaken || ASSIGNMENT_INDEXES.some((index) => violates(error, index))

/**
 * @returns the start that is due once this is committed
 * @throws Overtaken
 */
export async function placeSandbox(tx: Transaction, context: PlaceContext, choice: Place): Promise<DueOrder> {
  const [order] = await placeOnHost(tx, context, choice.hostId, [choice])
  if (order === undefined) throw new Overtaken()
  return order
}

/** @throws Overtaken */
async function placeOnHost(tx: Transaction, context: PlaceContext, hostId: string, choices: readonly Place[]): Promise<DueOrder[]> {
  // Pools are locked in the order of their keys, before the host's capacity.
  const inOrder = choices.toSorted((a, b) => (a.poolKey === b.poolKey ? 0 : (a.poolKey ?? '') < (b.poolKey ?? '') ? -1 : 1))
  const writing = inOrder.map(({ sandboxId, generation, epoch, poolKey }) => {
    // An open watch of this process is handed the order; any other reads it.
    if (!context.desk.watches(hostId)) tx.wake(wakeHost(hostId, sandboxId))
    if (poolKey !== null) tx.wake(wakePlanner)
    return [
      // guard: place.gen
      moveSandbox(tx, { id: sandboxId, generation }, 'place', { hostId }),
      // guard: place.one, claim.tgt, claim.epoch
      insertAssignment(tx, { id: newAssignmentId(context.world.random), sandboxId, hostId, epoch, poolKey }),
    ] as const
  })
  const moving = writing.map(([moved]) => moved)
  const inserting = writing.map(([, inserted]) => inserted)
  // guard: place.cap, claim.cordon
  const [moved, inserted] = await together([together(moving), together(inserting), reserveOnHost(tx, hostId, inOrder.map(reservedFor).reduce(plus, ZERO))])
  return inOrder.map(({ sandboxId }, index): DueOrder => {
    const sandbox = moved[index]
    const assignment = inserted[index]
    if (sandbox === undefined || assignment === undefined) throw new Overtaken()
    return { ...sandbox, ...assignment, sandbox_id: sandboxId, assignment_generation: sandbox.generation, assignment_epoch: assignment.epoch }
  })
}

/** What a unit holds is reserved already. */
const reservedFor = ({ need, poolKey }: Place): ExactAmounts => (poolKey === null ? need : { vcpuMilli: need.vcpuMilli, memoryMb: 0, diskGb: 0 })
