/** Usage: one interval per generation that became ready, closed when its assignment is released. */
import type { AssignmentRow } from './assignments.ts'
import type { Transaction } from './database.ts'
import type { SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

const open = statement('usage-intervals/open')

export async function openUsage(tx: Transaction, sandbox: SandboxRow, assignment: AssignmentRow): Promise<void> {
  await tx.run(open, [sandbox.id, assignment.generation, sandbox.tenant_id, assignment.vcpu_milli, assignment.memory_mb, assignment.disk_gb])
}
