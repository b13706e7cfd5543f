/**
 * One table of behaviour for every driver. A row runs on each driver that it names; what a driver cannot do is absent from its column, with
 * the reason beside the row.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import type { HostReport, RuntimeSpec } from '@sandglass/contract'
import { differences, inventory } from '../../../tests/failure/leftovers.ts'
import type { Agent } from '../src/agent.ts'
import { findCgroupTree } from '../src/cgroups/cgroup-tree.ts'
import { parseRuntimeName } from '../src/domain/runtime-name.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, specOf } from './support/installation.ts'
import { until } from './support/until.ts'

type Ready = Extract<HostReport, { type: 'ready' }>
type Started = { readonly sandbox: string; readonly ready: Ready; readonly gateway: GatewayClient }
type Row = { readonly name: string; readonly drivers: readonly RuntimeSpec['driver'][]; readonly run: (driver: RuntimeSpec['driver']) => Promise<void> }

/** For what goes on behind an answer, on a busy machine. */
const SETTLES_MS = 20_000
/** What “within seconds” is on a busy machine. */
const SECONDS_MS = 15_000

const BOTH = ['gvisor', 'fake'] as const
/** The fake driver limits and isolates nothing. */
const ISOLATING = ['gvisor'] as const

let installation: Installation
let agent: Agent

before(async () => {
  installation = await Installation.create()
  agent = await installation.startAgent()
})
after(() => installation[Symbol.asyncDispose]())

async function start(driver: RuntimeSpec['driver'], fields: Partial<RuntimeSpec> = {}): Promise<Started> {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await specOf(sandbox, { driver, ...fields }), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, spec)
  const ready = await plane.untilReported('ready', sandbox)
  const started = { sandbox, ready, gateway: new GatewayClient(agent.dataPlaneUrl, sandbox, 1) }
  running.add(started)
  return started
}

const running = new Set<Started>()

/** What a row that failed left running would fail the rows after it. */
async function endRunning(): Promise<void> {
  for (const started of running) await end(started)
}

async function end(started: Started): Promise<void> {
  const { sandbox, gateway } = started
  running.delete(started)
  gateway.close()
  installation.plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  await installation.plane.untilReported('ended', sandbox, ({ upto }) => upto === 2)
}

/** The witness is independent of the agent, which may still be writing down that its report was answered. */
async function assertNothingLeft(): Promise<void> {
  let left: string[] = []
  const look = (): true | undefined => {
    left = differences(inventory({ home: installation.dir, name: installation.installation }), new Set())
    return left.length === 0 ? true : undefined
  }
  await until('nothing to be left', look, SETTLES_MS).catch(() => assert.deepEqual(left, []))
}

/** Pid of the process that lives as long as the runtime. */
function runtimePid(driver: RuntimeSpec['driver'], { sandbox }: Started): number {
  return installation.pidOf(sandbox, driver === 'gvisor' ? 'runsc-sandbox' : '')
}

/** What the runtime has used of the host's processors. */
function hostCpuMs({ sandbox }: Started): number {
  const name = parseRuntimeName(`${sandbox}-g1`)?.name
  assert.ok(name !== undefined)
  for (const hierarchy of findCgroupTree().hierarchies) {
    const group = join(hierarchy, agent.layout.cgroup(name))
    if (existsSync(join(group, 'cpuacct.usage'))) return Number(readFileSync(join(group, 'cpuacct.usage'), 'utf8')) / 1e6
    const usage = existsSync(join(group, 'cpu.stat')) ? /usage_usec (\d+)/.exec(readFileSync(join(group, 'cpu.stat'), 'utf8')) : null
    if (usage !== null) return Number(usage[1]) / 1e3
  }
  throw new Error('no control group counts processor time')
}

const rows: Row[] = [
  {
    name: 'starts, takes its identity, runs, stops, and leaves nothing',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver, { env: { GREETING: 'hello' } })
      const health = await started.gateway.send('GET', '/v1/health')
      assert.equal(JSON.parse(health.body.toString('utf8')).sandbox, started.sandbox)
      assert.deepEqual(await started.gateway.run('echo "$GREETING"; echo oh >&2; exit 3'), { stdout: 'hello\n', stderr: 'oh\n', exitCode: 3 })
      assert.equal(started.ready.evidence['driver'], driver)
      assert.ok(!Object.keys(started.ready.evidence).some((name) => name.includes('pid')), 'a tenant is told nothing of the host’s processes')
      for (const phase of ['accept', 'record', 'network', 'launch', 'guest', 'identity', 'total'])
        assert.ok((started.ready.timings_ms[phase] ?? -1) >= 0, phase)
      await end(started)
      assert.equal(await agent.census(), 0)
      await assertNothingLeft()
    },
  },
  {
    name: 'at the moment its end is told, nothing of it is left',
    drivers: BOTH,
    async run(driver) {
      const { plane } = installation
      const started = await start(driver)
      let left: string[] = ['never told']
      plane.outcome = (report) => {
        if (report.type === 'ended') left = differences(inventory({ home: installation.dir, name: installation.installation }), new Set())
        return 'accepted'
      }
      await end(started)
      plane.outcome = () => 'accepted'
      assert.deepEqual(left, [])
    },
  },
  {
    name: 'a runtime that is killed behind the agent’s back is told within seconds, and is gone for gateways at once',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver)
      process.kill(runtimePid(driver, started), 'SIGKILL')
      const ended = await installation.plane.untilReported('ended', started.sandbox, () => true, SECONDS_MS)
      assert.equal(ended.reason, 'runtime_exited')
      assert.equal((await started.gateway.send('GET', '/v1/health')).status, 410)
      await end(started)
      await assertNothingLeft()
    },
  },
  {
    name: 'processes and their output live through a restart of the agent',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver)
      const command = JSON.stringify({ shell: 'for i in 1 2 3; do echo line $i; done; read x; echo got $x', stdin: true, key: 'long' })
      const created = await started.gateway.send('POST', '/v1/processes', command, { 'content-type': 'application/json' })
      assert.equal(created.status, 201)
      const lines = 'line 1\nline 2\nline 3\n'.length
      const processOf = async (gateway: GatewayClient) => JSON.parse((await gateway.send('GET', '/v1/processes/key:long')).body.toString('utf8'))
      await until('three lines', async () => ((await processOf(started.gateway)).stdout.end === lines ? true : undefined))
      const before = JSON.parse((await started.gateway.send('GET', '/v1/health')).body.toString('utf8'))
      started.gateway.close()
      await installation.stopAgent(agent)
      agent = await installation.startAgent()
      const gateway = new GatewayClient(agent.dataPlaneUrl, started.sandbox, 1)
      const health = JSON.parse((await gateway.send('GET', '/v1/health')).body.toString('utf8'))
      assert.equal(health.boot_id, before.boot_id)
      const process = await processOf(gateway)
      assert.deepEqual([process.state, process.stdout], ['running', { start: 0, end: lines }])
      await gateway.send('POST', '/v1/processes/key:long/stdin?close=1', 'word\n')
      const output = await gateway.send('GET', '/v1/processes/key:long/output?stream=stdout&since=0&follow=1')
      assert.match(output.body.toString('latin1'), /line 3\n[\s\S]*got word\n/)
      await end({ ...started, gateway })
      await assertNothingLeft()
    },
  },
  {
    name: 'a runtime that died while no agent ran is told and removed by the next one',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver)
      const pid = runtimePid(driver, started)
      started.gateway.close()
      await installation.stopAgent(agent)
      process.kill(pid, 'SIGKILL')
      agent = await installation.startAgent()
      assert.equal((await installation.plane.untilReported('ended', started.sandbox)).reason, 'runtime_exited')
      await assertNothingLeft()
    },
  },
  {
    name: 'a runtime that ends by itself is told as such',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver)
      const pid = runtimePid(driver, started)
      if (driver === 'gvisor') await started.gateway.send('POST', '/v1/processes', JSON.stringify({ argv: ['/bin/kill', '-KILL', '1'] })).catch(() => undefined)
      if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGTERM')
      assert.equal((await installation.plane.untilReported('ended', started.sandbox)).reason, 'runtime_exited')
      await end(started)
    },
  },
  {
    name: 'two ends at the same time are one end',
    drivers: BOTH,
    async run(driver) {
      const started = await start(driver)
      installation.plane.sendEnd({ sandbox: started.sandbox, upto: 2, host: agent.hostId })
      await end(started)
      await assertNothingLeft()
    },
  },
  {
    name: 'eight sandboxes start side by side and are apart',
    drivers: BOTH,
    async run(driver) {
      const all = await Promise.all(Array.from({ length: 8 }, (_, index) => start(driver, { env: { NUMBER: `${index}` } })))
      const outputs = await Promise.all(all.map(({ gateway }) => gateway.run('echo "$NUMBER"')))
      assert.deepEqual(
        outputs.map(({ stdout }) => stdout),
        Array.from({ length: 8 }, (_, index) => `${index}\n`),
      )
      await Promise.all(all.map(end))
      await assertNothingLeft()
    },
  },
  {
    name: 'the kernel is gVisor’s, the hostname is the sandbox’s, the root is writable and disposable',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver, { hostname: 'box' })
      assert.match((await started.gateway.run('cat /proc/version')).stdout, /gvisor/i)
      assert.equal((await started.gateway.run('hostname; touch /etc/mine /usr/bin/mine && ls /etc/mine')).stdout, 'box\n/etc/mine\n')
      assert.notEqual((await started.gateway.run('touch /run/sandglass/x')).exitCode, 0)
      await end(started)
      const next = await start(driver)
      assert.notEqual((await next.gateway.run('ls /etc/mine')).exitCode, 0)
      await end(next)
    },
  },
  {
    name: 'there is a loopback interface of its own and nothing else',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver)
      const seen = await started.gateway.run('awk -F: \'NR>2 {gsub(/ /,"",$1); print $1}\' /proc/net/dev')
      assert.equal(seen.stdout, 'lo\n')
      const connect = 'import socket,sys\ntry: socket.create_connection((sys.argv[1], 80), 3)\nexcept OSError as e: print(e.errno)'
      assert.equal((await started.gateway.run(`python3 -c '${connect}' 10.0.0.1`)).stdout, '101\n')
      const own = readFileSync('/proc/net/dev', 'utf8')
      const inside = readFileSync(`/proc/${runtimePid(driver, started)}/net/dev`, 'utf8')
      assert.ok(own.split('\n').length > 0 && inside.trim().split('\n').length === 3, inside)
      await end(started)
    },
  },
  {
    name: 'a fork bomb meets the limit of processes inside, and the guest agent still answers',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver, { pids_max: 100, resources: { vcpu: 1, memory_mb: 1_024, disk_gb: 1 } })
      // It goes on after the first refusal: a limit that only holds now and then lets many more through.
      const bomb = [
        'import os, signal',
        'kids, refused = [], []',
        'for attempt in range(200):',
        '  try:',
        '    pid = os.fork()',
        '    if pid == 0: signal.pause()',
        '    kids.append(pid)',
        '  except OSError as error: refused.append(error.errno)',
        'print(len(kids), len(refused), sorted(set(refused)))',
        'for kid in kids: os.kill(kid, 9)',
      ]
      const answer = await started.gateway.run(`python3 -c '${bomb.join('\n')}'`)
      const [, kids, refused] = /^(\d+) (\d+) \[11\]\n$/.exec(answer.stdout) ?? []
      assert.equal(Number(kids) + Number(refused), 200, `${answer.stdout}${answer.stderr}`)
      // The limit counts all tasks: the program and the guest agent's own threads as well.
      assert.ok(Number(kids) > 80 && Number(kids) < 99, `${kids} children`)
      const health = await started.gateway.send('GET', '/v1/health')
      assert.equal(health.status, 200)
      await end(started)
    },
  },
  {
    name: 'a runtime that breaks says its last words',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver)
      const name = parseRuntimeName(`${started.sandbox}-g1`)?.name
      const groups = findCgroupTree().hierarchies.map((hierarchy) => join(hierarchy, name === undefined ? '' : agent.layout.cgroup(name)))
      const group = groups.find((path) => existsSync(join(path, 'pids.max'))) ?? ''
      // A host-side limit of processes that the sentry cannot live with.
      writeFileSync(join(group, 'pids.max'), `${Number(readFileSync(join(group, 'pids.current'), 'utf8')) + 3}`)
      void started.gateway.run('for i in $(seq 1 50); do sleep 5 & done; wait').catch(() => undefined)
      const ended = await installation.plane.untilReported('ended', started.sandbox)
      // The sentry's own thread or one of its language's runtime: whichever the limit met first.
      assert.match(ended.detail ?? '', /^runtime_panic: (panic: |runtime: failed to create new OS thread)/)
      await end(started)
    },
  },
  {
    name: 'memory beyond the limit ends the sandbox and says why',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver, { resources: { vcpu: 1, memory_mb: 128, disk_gb: 1 } })
      void started.gateway.run("python3 -c 'x = bytearray(600 * 1024 * 1024); print(len(x))'").catch(() => undefined)
      const ended = await installation.plane.untilReported('ended', started.sandbox)
      assert.equal(ended.reason, 'runtime_exited')
      assert.match(ended.detail ?? '', /^out_of_memory/)
      await end(started)
    },
  },
  {
    name: 'the writable layer ends with a clean ENOSPC at its size',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver, { resources: { vcpu: 1, memory_mb: 512, disk_gb: 1 } })
      const written = await started.gateway.run(
        'dd if=/dev/zero of=/root/big bs=1M count=1200 2>&1 | grep -o "No space left on device"; fallocate -l 500G /root/huge 2>&1',
      )
      assert.match(written.stdout, /No space left on device\n[\s\S]*No space left on device/)
      assert.equal((await started.gateway.run('rm -f /root/big; echo ok > /root/small && cat /root/small')).stdout, 'ok\n')
      await end(started)
    },
  },
  {
    name: 'the CPU quota is in force once it is ready',
    drivers: ISOLATING,
    async run(driver) {
      const started = await start(driver, { resources: { vcpu: 0.25, memory_mb: 512, disk_gb: 1 } })
      const before = hostCpuMs(started)
      const began = performance.now()
      await started.gateway.run("python3 -c 'import time\nw=time.monotonic()\nwhile time.monotonic()-w<4: pass'")
      // The processors' own count; clocks inside a sandbox run on while it is throttled.
      const share = (hostCpuMs(started) - before) / (performance.now() - began)
      assert.ok(share > 0.02 && share < 0.4, `used ${share} of a CPU under a quota of 0.25`)
      await end(started)
    },
  },
]

for (const driver of BOTH) {
  describe(driver, { concurrency: false }, () => {
    afterEach(endRunning)
    for (const row of rows) if (row.drivers.includes(driver)) test(row.name, () => row.run(driver))
  })
}

test('a start that fails at each step of the fake driver leaves nothing and says why', async () => {
  const { plane } = installation
  const scripts: [script: object, detail: RegExp][] = [
    [{ launch_fails: 'the launch failed' }, /the launch failed/],
    [{ limit_fails: 'the limits failed' }, /the limits failed/],
    [{ exit_after_ms: 0 }, /./],
  ]
  for (const [script, detail] of scripts) {
    const sandbox = newSandbox()
    const { ticket, spec } = plane.ticket(await specOf(sandbox, { driver: 'fake', env: { SANDGLASS_FAKE_SCRIPT: JSON.stringify(script) } }), {
      generation: 1,
      host: agent.hostId,
    })
    plane.sendStart(ticket, spec)
    if (Object.hasOwn(script, 'exit_after_ms')) {
      plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
      await plane.untilReported('ended', sandbox)
      continue
    }
    const ended = await plane.untilReported('ended', sandbox)
    assert.equal(ended.reason, 'start_failed')
    assert.match(ended.detail ?? '', detail)
  }
  await assertNothingLeft()
})
