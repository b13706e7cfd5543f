/** What a sandbox uses, as its host counts it: a guest is neither asked nor believed, and a starved one is seen all the same. */
import Type, { type Static } from 'typebox'
import { closed } from './schema.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

export const SandboxUsageSchema = closed(
  {
    at_ms: count('When it was counted: milliseconds of a clock of the host’s own, of which only differences mean something.'),
    cpu_ms: count('CPU time since the start, milliseconds, the sandbox’s own kernel included.'),
    memory_bytes: count('Memory in use without file pages that can be dropped, the sandbox’s own kernel included.'),
    memory_limit_bytes: count('Where the kernel stops it.'),
    disk_read_bytes: count('Read from the host’s disks since the start.'),
    disk_written_bytes: count('Written to the host’s disks since the start.'),
    network_received_bytes: count('Through its network interfaces, loopback left out.'),
    network_sent_bytes: count('Through its network interfaces, loopback left out.'),
  },
  { $id: 'SandboxUsage' },
)
export type SandboxUsage = Static<typeof SandboxUsageSchema>
