/** `capacity` and `quota` as they are typed, against a server that the test scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capacity, Quota } from '@sandglass/contract'
import { ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { run } from './command-line.ts'

const amounts = (vcpu: number, memory_mb: number, disk_gb: number) => ({ vcpu, memory_mb, disk_gb })

const CAPACITY: Capacity = {
  at: '2026-01-01T00:00:00.000Z',
  classes: [
    {
      region: 'l1',
      class: 'big',
      hosts: { ready: 3, cordoned: 1, lost: 0 },
      offered: amounts(96, 65_536, 900),
      reserved: amounts(10.5, 60_000, 100),
      free: amounts(85.5, 5_536, 800),
      largest_free: amounts(30, 2_048, 290),
      pool: { target: 6, held: 6 },
    },
  ],
  demand: [
    {
      region: 'l1',
      isolation: 'gvisor',
      waiting: 12,
      asked: amounts(6, 49_152, 24),
      largest: amounts(0.5, 4_096, 2),
      oldest_waiting_seconds: 185,
      reasons: [
        { code: 'no_capacity', count: 11 },
        { code: 'awaiting_end', count: 1 },
      ],
    },
  ],
  waiting: 12,
  oldest_waiting_seconds: 185,
  start_lead: { samples: 40, median_seconds: 0.1874 },
}

const QUOTA: Quota = {
  running_sandboxes: { limit: 1_000, used: 3 },
  vcpu: { limit: 4_000, used: 1.5 },
  memory_mb: { limit: 4_194_304, used: 1_536 },
  disk_gb: { limit: 65_536, used: 6 },
  kept_sandboxes: { limit: 10_000, used: 0 },
  weight: 2,
  rates: { key: { requests: 5_000, window_seconds: 10 }, tenant: { requests: 10_000, window_seconds: 10 } },
}

test('capacity shows what hosts offer, what waits and why, and the objects of the API', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /^\/v1\/capacity$/, () => ({ status: 200, json: CAPACITY }))
  const lines = (await run(server, ['capacity'])).stdout.toString().split('\n')
  assert.match(lines[0] ?? '', /^REGION +CLASS +HOSTS +CPU +MEMORY MB +DISK GB +LARGEST FREE +POOL$/)
  assert.match(lines[1] ?? '', /^l1 +big +3 ready, 1 cordoned +10\.5\/96 +60,000\/65,536 +100\/900 +30 vCPU, 2,048 MB, 290 GB +6$/)
  assert.match(lines[3] ?? '', /^waiting +12$/)
  assert.match(lines[4] ?? '', /^start +0\.19 s from placement to ready, median of 40$/)
  assert.match(lines[6] ?? '', /^REGION +ISOLATION +WAITING +OLDEST +ASKED +LARGEST +REASONS$/)
  assert.match(lines[7] ?? '', /^l1 +gvisor +12 +3 min +6 vCPU, 49,152 MB, 24 GB +0\.5 vCPU, 4,096 MB, 2 GB +11 no_capacity, 1 awaiting_end$/)
  assert.deepEqual(JSON.parse((await run(server, ['capacity', '--json'])).stdout.toString()), CAPACITY)
})

test('quota shows what is used of each limit', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /^\/v1\/quotas$/, () => ({ status: 200, json: QUOTA }))
  const text = (await run(server, ['quota'])).stdout.toString()
  for (const line of [/^running sandboxes +3 of 1,000$/m, /^vCPU +1\.5 of 4,000$/m, /^memory +1,536 of 4,194,304 MB$/m, /^weight +2$/m])
    assert.match(text, line)
  assert.deepEqual(JSON.parse((await run(server, ['quota', '--json'])).stdout.toString()), QUOTA)
})
