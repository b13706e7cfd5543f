/** Usage: one interval per generation that became ready, closed when its assignment is released, or the epoch of its host is over. */
import type { AssignmentRow } from './assignments.ts'
import type { Transaction } from './database.ts'
import type { SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

const open = statement('usage-intervals/open')
const closeOfEpochs = statement('usage-intervals/close-of-epochs')

export async function openUsage(tx: Transaction, sandbox: SandboxRow, assignment: AssignmentRow): Promise<void> {
  await tx.run(open, [sandbox.id, assignment.generation, sandbox.tenant_id, assignment.vcpu_milli, assignment.memory_mb, assignment.disk_gb])
}

/** Of what the host held in epochs before its present one; behind the statement that began that one, in its transaction. */
export async function closeUsageOfEpochs(tx: Transaction, hostId: string): Promise<void> {
  await tx.run(closeOfEpochs, [hostId])
}
