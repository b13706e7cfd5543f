/** E4, F2: 256 MiB out of a sandbox, as the output of a command and as a file, against `runsc exec cat`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Sandbox } from '@sandglass/sdk'
import { livingRole, ROLES } from '../../tests/failure/roles.ts'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { pssMib } from '../installation/processes.ts'
import { asOptions, ROOMY } from '../installation/sizes.ts'
import { interleave, timed } from '../measure/interleave.ts'
import type { Side } from '../measure/samples.ts'
import { median } from '../measure/statistics.ts'
import { RawGvisor, type RawSandbox } from '../peers/raw-gvisor.ts'
import { ratioAtLeast, valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const FILE = '/root/bench-stream'
const MIB = 1024 * 1024
const SIZE_MIB = 256
const MAKE_FILE = ['/bin/sh', '-c', `head -c ${SIZE_MIB * MIB} /dev/urandom > ${FILE}`]
const ROUNDS = 3
const MEMORY_SERIES = 'E4 memory growth'

/** @throws Error when bytes are missing: a fast end is no speed */
async function drained(stream: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0
  for await (const chunk of stream) bytes += chunk.byteLength
  if (bytes !== SIZE_MIB * MIB) throw new Error(`${bytes} bytes came instead of ${SIZE_MIB * MIB}`)
}

async function streamed(sandbox: Sandbox): Promise<void> {
  const cat = await sandbox.spawn(['/bin/cat', FILE])
  await drained(cat.stdout)
  await cat.exit
}

async function downloaded(sandbox: Sandbox): Promise<void> {
  const { body } = await sandbox.files.open(FILE)
  await drained(body)
}

async function catRaw(raw: RawGvisor, peer: RawSandbox): Promise<void> {
  const [program, ...args] = raw.execCommand(peer, ['/bin/cat', FILE])
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  await drained(child.stdout)
  await ended
}

/** Memory of each of our processes, the guest agent included; MiB by name. */
async function memory(bench: Bench, sandbox: Sandbox): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const role of [...ROLES, 'supervisor'] as const) {
    const living = livingRole(bench.installation.home, role)
    if (living !== undefined) found.set(role, pssMib(living.pid))
  }
  const { stdout } = await sandbox.exec(['/bin/cat', '/proc/1/status'])
  found.set('guest agent', Number(/^VmRSS:\s+(\d+) kB$/m.exec(stdout)?.[1] ?? 0) / 1_024)
  return found
}

/** How much the process that grows most grows while the stream runs. */
async function growth(bench: Bench, sandbox: Sandbox): Promise<number> {
  const before = await memory(bench, sandbox)
  const most = new Map(before)
  let streaming = true
  const watch = async (): Promise<void> => {
    while (streaming) {
      for (const [name, value] of await memory(bench, sandbox)) most.set(name, Math.max(value, most.get(name) ?? 0))
    }
  }
  const watching = watch()
  try {
    await streamed(sandbox)
  } finally {
    streaming = false
    await watching
  }
  const grown = [...most].map(([name, value]) => ({ name, mib: value - (before.get(name) ?? value) })).sort((left, right) => right.mib - left.mib)
  bench.note('E4', `memory growth: ${grown.map(({ name, mib }) => `${name} ${mib.toFixed(1)}`).join(', ')} MiB`)
  return grown[0]?.mib ?? 0
}

async function measure(bench: Bench): Promise<Finding[]> {
  await using sandbox = await Sandbox.create({ client: bench.client, resources: asOptions(ROOMY), ttlSeconds: 1_800 })
  await bench.freshness.prove(sandbox)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const peer = await raw.prepare(ROOMY)
  await raw.start(peer, bench.signal)
  await sandbox.exec(MAKE_FILE, { check: true })
  await raw.exec(peer, MAKE_FILE)
  const sample = (series: string, side: Side, transfer: () => Promise<void>) => ({
    each: 1,
    sample: async (keep: boolean) => {
      const ms = await timed(transfer)
      if (keep) bench.samples.add(series, side, SIZE_MIB / (ms / 1_000), 'MiB/s')
    },
  })
  await interleave(
    bench.count(ROUNDS),
    [
      sample('E4 stream', 'ours', () => streamed(sandbox)),
      sample('raw cat', 'peer', () => catRaw(raw, peer)),
      sample('F2 download', 'ours', () => downloaded(sandbox)),
    ],
    bench.signal,
  )
  bench.samples.add(MEMORY_SERIES, 'ours', await growth(bench, sandbox), 'MiB')
  return findings(bench)
}

function findings({ samples }: Bench): Finding[] {
  const cat = { peer: 'runsc exec cat', peerValue: median(samples.of('raw cat', 'peer')) }
  return [
    {
      id: 'E4',
      metric: 'streamed stdout, 256 MiB',
      unit: 'MiB/s',
      value: median(samples.of('E4 stream', 'ours')),
      ...cat,
      must: ratioAtLeast(1.5),
      aim: ratioAtLeast(2.5),
    },
    {
      id: 'E4',
      metric: 'memory growth of any process meanwhile',
      unit: 'MiB',
      value: median(samples.of(MEMORY_SERIES, 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtMost(32, 'MiB'),
      aim: valueAtMost(8, 'MiB'),
    },
    {
      id: 'F2',
      metric: 'download, 256 MiB',
      unit: 'MiB/s',
      value: median(samples.of('F2 download', 'ours')),
      ...cat,
      must: ratioAtLeast(2),
      aim: ratioAtLeast(3),
    },
  ]
}

export const streams: Family = { ids: ['E4', 'F2'], setting: 'no pool', measure }
