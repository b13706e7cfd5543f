/** `quota`: what a tenant may hold, and holds. */
import type { Quota } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { renderFields } from '../table.ts'
import { thousands } from '../text.ts'

export const command: Command = {
  usage: 'quota',
  help: 'Shows what your tenant may hold, and holds. An operator sets it, as the row of the tenant in `quotas`.',
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  noMoreThan(operands, 0)
  await printObject(io, formatOf(values), await connect(values).quotas(), describe)
  return 0
}

const ofIt = ({ used, limit }: { used: number; limit: number }): string => `${thousands(used)} of ${thousands(limit)}`
const rate = ({ requests, window_seconds: window }: Quota['rates']['key']): string => `${thousands(requests)} in ${window} s`

const describe = (quota: Quota): string =>
  renderFields([
    ['running sandboxes', ofIt(quota.running_sandboxes)],
    ['vCPU', ofIt(quota.vcpu)],
    ['memory', `${ofIt(quota.memory_mb)} MB`],
    ['disk', `${ofIt(quota.disk_gb)} GB`],
    ['kept sandboxes', `${ofIt(quota.kept_sandboxes)}, stopped or failed`],
    ['weight', String(quota.weight)],
    ['requests', `${rate(quota.rates.key)} of a key, ${rate(quota.rates.tenant)} of the tenant, at each control plane`],
  ])
