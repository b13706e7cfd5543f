/** One table of behaviour of pool members for every driver, beside that of sandboxes: whichever way it came up, a sandbox is the same. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { RuntimeSpec } from '@sandglass/contract'
import { differences, inventory, wholeMembers } from '../../../tests/failure/leftovers.ts'
import type { Agent } from '../src/agent.ts'
import { cpuShares, findCgroupTree } from '../src/cgroups/cgroup-tree.ts'
import { parseRuntimeName } from '../src/domain/runtime-name.ts'
import { sendSignal } from '../src/processes/process-table.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation } from './support/installation.ts'
import { ScriptedPool } from './support/scripted-pool.ts'
import { until } from './support/until.ts'

type Driver = RuntimeSpec['driver']
type Row = { readonly name: string; readonly drivers: readonly Driver[]; readonly run: (pool: ScriptedPool) => Promise<void> }

/** For what goes on behind an answer, on a busy machine. */
const SETTLES_MS = 20_000
/** What “within seconds” is on a busy machine. */
const SECONDS_MS = 15_000

const BOTH = ['gvisor', 'fake'] as const
/** The fake driver limits nothing, and is up before anything can come in between. */
const ISOLATING = ['gvisor'] as const

let installation: Installation
let agent: Agent

before(async () => {
  installation = await Installation.create()
  agent = await installation.startAgent()
})
after(() => installation[Symbol.asyncDispose]())

const things = () => inventory({ home: installation.dir, name: installation.installation })

async function assertOnly(members: number): Promise<void> {
  let lines: string[] = []
  const look = (): true | undefined => {
    const found = things()
    lines = [...differences(found, new Set()), `${wholeMembers(found).size} members`]
    return lines.length === 1 && lines[0] === `${members} members` ? true : undefined
  }
  await until('nothing but members', look, SETTLES_MS).catch(() => assert.deepEqual(lines, [`${members} members`]))
}

/** Of the one member that there is. */
function sharesOfMember(name: string): number {
  const parsed = parseRuntimeName(name)?.name
  if (parsed === undefined) throw new Error(`${name} is not a runtime`)
  for (const hierarchy of findCgroupTree().hierarchies) {
    const file = join(hierarchy, agent.layout.cgroup(parsed), 'cpu.shares')
    if (existsSync(file)) return Number(readFileSync(file, 'utf8'))
  }
  throw new Error('no share of the CPUs is kept')
}

const rows: Row[] = [
  {
    name: 'it is booted, claimed, runs with the environment of its sandbox, and leaves nothing',
    drivers: BOTH,
    async run(pool) {
      pool.aim(2)
      await pool.untilReady(agent.healthUrl)
      await assertOnly(2)
      const ready = await pool.start({ env: { GREETING: 'hello' } })
      assert.deepEqual([ready.path, ready.evidence['driver']], ['claimed', pool.spec.driver])
      const gateway = new GatewayClient(agent.dataPlaneUrl, ready.sandbox, 1)
      const health = JSON.parse((await gateway.send('GET', '/v1/health')).body.toString('utf8'))
      assert.deepEqual([health.sandbox, health.boot_id], [ready.sandbox, ready.evidence['guest_boot_id']])
      assert.deepEqual(await gateway.run('echo "$GREETING"; exit 3'), { stdout: 'hello\n', stderr: '', exitCode: 3 })
      gateway.close()
      await pool.end(ready.sandbox)
      await assertOnly(1)
    },
  },
  {
    name: 'it has run something before it is claimed, and nothing of that is left',
    // On the machine itself pids say nothing, and what it runs is the machine's.
    drivers: ISOLATING,
    async run(pool) {
      pool.aim(1)
      await pool.untilReady(agent.healthUrl)
      const { sandbox } = await pool.start()
      const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
      assert.deepEqual(JSON.parse((await gateway.send('GET', '/v1/processes')).body.toString('utf8')), { items: [] })
      const { stdout } = await gateway.run('echo $$; ls /proc | grep -c "^[0-9]"; find / -xdev -newer /run/sandglass/channel.sock -type f | sort')
      const [pid, processes, ...written] = stdout.trim().split('\n')
      assert.ok(Number(pid) > 3, `the first command has pid ${pid}`)
      // The guest agent, the shell, and the two that count.
      assert.ok(Number(processes) <= 4, `${processes} processes`)
      assert.deepEqual(written, ['/etc/hostname', '/etc/hosts', '/etc/machine-id'])
      gateway.close()
      await pool.end(sandbox)
    },
  },
  {
    name: 'what was claimed lives through a restart of the agent',
    drivers: BOTH,
    async run(pool) {
      pool.aim(1)
      await pool.untilReady(agent.healthUrl)
      const { sandbox, evidence } = await pool.start()
      await installation.stopAgent(agent)
      agent = await installation.startAgent()
      const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
      const health = JSON.parse((await gateway.send('GET', '/v1/health')).body.toString('utf8'))
      assert.equal(health.boot_id, evidence['guest_boot_id'])
      gateway.close()
      assert.equal(await agent.census(), 0)
      await pool.end(sandbox)
      await assertOnly(0)
    },
  },
  {
    name: 'what was claimed and is killed behind the agent’s back is told within seconds',
    drivers: BOTH,
    async run(pool) {
      pool.aim(1)
      await pool.untilReady(agent.healthUrl)
      const { sandbox } = await pool.start()
      for (const { kind, what, sandbox: of } of things()) if (kind === 'process' && of === sandbox) sendSignal(Number(/^\d+/.exec(what)?.[0]), 'SIGKILL')
      const ended = await installation.plane.untilReported('ended', sandbox, () => true, SECONDS_MS)
      assert.deepEqual([ended.reason, ended.pool_version], ['runtime_exited', pool.version])
      await pool.end(sandbox)
      await assertOnly(0)
    },
  },
  {
    name: 'a claim that finds it booting waits for it, and starts nothing beside it (cold.fit)',
    drivers: ISOLATING,
    async run(pool) {
      pool.aim(1)
      await until('a boot', async () => ((await pool.members(agent.healthUrl)).booting === 1 ? true : undefined))
      const ready = await pool.start()
      assert.equal(ready.path, 'claimed')
      assert.deepEqual((await readdir(agent.layout.runtimes)).length, 1)
      await pool.end(ready.sandbox)
      await assertOnly(0)
    },
  },
  {
    name: 'an end order stops a claim that waits, and the member that nobody needs ends too',
    drivers: ISOLATING,
    async run(pool) {
      pool.aim(1)
      await until('a boot', async () => ((await pool.members(agent.healthUrl)).booting === 1 ? true : undefined))
      const { sandbox, ticket, spec } = pool.claim()
      installation.plane.sendStart(ticket, spec)
      assert.equal((await pool.end(sandbox)).pool_version, pool.version)
      await assertOnly(0)
      assert.deepEqual(installation.plane.reported('ready', sandbox), [])
    },
  },
  {
    name: 'it yields to what runs until it is claimed',
    drivers: ISOLATING,
    async run(pool) {
      pool.aim(1)
      await pool.untilReady(agent.healthUrl)
      const [member = ''] = await readdir(agent.layout.runtimes)
      const own = cpuShares(pool.spec.resources.vcpu)
      assert.ok(sharesOfMember(member) < own / 4, `${sharesOfMember(member)} of ${own}`)
      const { sandbox } = await pool.start()
      assert.equal(sharesOfMember(member), own)
      await pool.end(sandbox)
    },
  },
]

for (const driver of BOTH) {
  describe(driver, { concurrency: false }, () => {
    let memoryMb = 256
    for (const row of rows.filter(({ drivers }) => drivers.includes(driver))) {
      test(row.name, async () => {
        memoryMb += 1
        const pool = await ScriptedPool.of(installation, agent.hostId, { driver, resources: { vcpu: 0.5, memory_mb: memoryMb, disk_gb: 1 } })
        await row.run(pool)
        pool.aim(0)
        await pool.untilAcknowledged()
      })
    }
  })
}
