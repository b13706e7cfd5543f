/** Counts as kernels write them, version 1 and version 2, and what is missing. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { NO_USAGE, runtimeUsage } from '../src/cgroups/runtime-usage.ts'

const root = mkdtempSync(join(tmpdir(), 'sandglass-usage-'))
after(() => rmSync(root, { recursive: true }))

function write(path: string, content: string): void {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

const PROC = join(root, 'proc')
write('proc/42/io', 'rchar: 999\nwchar: 999\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4\n')
write(
  'proc/42/net/dev',
  `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0
  eth0:     300       3    0    0    0     0          0         0      500       5    0    0    0     0       0          0
  eth1:  1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0
`,
)
const ofProcess = { disk_read_bytes: 4096, disk_written_bytes: 8192, network_received_bytes: 301, network_sent_bytes: 502 }

test('version 1: a hierarchy for each controller', () => {
  write('v1/cpuacct/s/x/cpuacct.usage', '1234567890\n')
  write('v1/memory/s/x/memory.usage_in_bytes', '5000000\n')
  write('v1/memory/s/x/memory.limit_in_bytes', '9000000\n')
  write('v1/memory/s/x/memory.stat', 'inactive_file 7\ntotal_cache 9\ntotal_inactive_file 1000000\n')
  const tree = { version: 1, hierarchies: ['pids', 'cpuacct', 'memory'].map((name) => join(root, 'v1', name)) } as const
  const ofGroup = { cpu_ms: 1235, memory_bytes: 4_000_000, memory_limit_bytes: 9_000_000 }
  assert.deepEqual(runtimeUsage(tree, 's/x', 42, PROC), { ...ofGroup, ...ofProcess })
  assert.deepEqual(runtimeUsage(tree, 's/x', undefined, PROC), { ...NO_USAGE, ...ofGroup })
})

test('version 2: one hierarchy', () => {
  write('v2/s/x/cpu.stat', 'usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n')
  write('v2/s/x/memory.current', '5000000\n')
  write('v2/s/x/memory.max', 'max\n')
  write('v2/s/x/memory.stat', 'anon 5\ninactive_file 6000000\n')
  const tree = { version: 2, hierarchies: [join(root, 'v2')] } as const
  assert.deepEqual(runtimeUsage(tree, 's/x', 42, PROC), { cpu_ms: 1235, memory_bytes: 0, memory_limit_bytes: 0, ...ofProcess })
})

test('what is gone counts nothing', () => {
  const tree = { version: 2, hierarchies: [join(root, 'v2')] } as const
  assert.deepEqual(runtimeUsage(tree, 's/gone', 43, PROC), NO_USAGE)
})
