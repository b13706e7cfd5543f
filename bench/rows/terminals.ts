/** T1, T2: a terminal through the gateway against OpenSSH on loopback with the same shell. */
import { rmSync, writeFileSync } from 'node:fs'
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { asOptions, ROOMY } from '../installation/sizes.ts'
import { interleave } from '../measure/interleave.ts'
import type { Side } from '../measure/samples.ts'
import { median, p99 } from '../measure/statistics.ts'
import { Line, PROMPT, SHELL } from '../peers/line.ts'
import { OpenSsh } from '../peers/openssh.ts'
import { ratioAtLeast, ratioAtMost, valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const PEER = 'OpenSSH on loopback'
const KEYS = 'abcdefghijklmnopqrstuvwxyz'
const BURSTS = 12
/** About 32 MiB, in whole lines: the prompt behind it stands on a line of its own. */
const FLOOD_LINES = 472_000
const FLOOD_FILE = '/tmp/bench-flood'
const FLOOD_LINE = `${'0123456789'.repeat(7)}\n`
const FLOOD_ROUNDS = 3
const CTRL_C = '\x03'
/** Empties the line, whatever stands in it. */
const CTRL_U = '\x15'
const FLOOD_BEFORE_CTRL_C_BYTES = 8 * 1024 * 1024
const MIB = 1024 * 1024

type Sides = { readonly side: Side; readonly line: Line }[]

/** Keys one after another, each awaited; then the line is given up. */
async function echo(bench: Bench, { side, line }: Sides[number], keep: boolean): Promise<void> {
  for (const key of KEYS) {
    const ms = await line.typed(key, key)
    if (keep) bench.samples.add('T1 echo', side, ms, 'ms')
  }
  await line.typed(`${CTRL_U}\n`, `\n${PROMPT}`)
}

async function flood(bench: Bench, { side, line }: Sides[number], keep: boolean): Promise<void> {
  const before = line.bytes
  const ms = await line.typed(`cat ${FLOOD_FILE}\n`, `\n${PROMPT}`)
  if (keep) bench.samples.add('T2 flood', side, (line.bytes - before) / MIB / (ms / 1_000), 'MiB/s')
}

/** A flood that would never end, then Ctrl-C. */
async function interrupt(bench: Bench, { side, line }: Sides[number], keep: boolean): Promise<void> {
  const before = line.bytes
  await line.typed('yes 0123456789012345678901234567890123456789\n', '\r\n0123456789')
  while (line.bytes - before < FLOOD_BEFORE_CTRL_C_BYTES) await new Promise((resolve) => setImmediate(resolve))
  const ms = await line.typed(CTRL_C, `\n${PROMPT}`)
  if (keep) bench.samples.add('T2 ctrl-c', side, ms, 'ms')
}

async function measure(bench: Bench): Promise<Finding[]> {
  await using sandbox = await Sandbox.create({ client: bench.client, resources: asOptions(ROOMY), ttlSeconds: 1_800 })
  await bench.freshness.prove(sandbox)
  await using ssh = await OpenSsh.start({ scratch: bench.scratch, cache: cachePlace() })
  const [program = '', ...rest] = SHELL
  const ours = Line.ofTerminal(await sandbox.terminal({ program: { argv: [program, ...rest] } }))
  const peer = Line.ofSsh(ssh.shell(SHELL.map((word) => `'${word}'`).join(' ')))
  const sides: Sides = [
    { side: 'ours', line: ours },
    { side: 'peer', line: peer },
  ]
  const both = (sample: (bench: Bench, side: Sides[number], keep: boolean) => Promise<void>, rounds: number): Promise<void> =>
    interleave(
      bench.count(rounds),
      sides.map((side) => ({ each: 1, sample: (keep) => sample(bench, side, keep) })),
      bench.signal,
    )
  try {
    for (const { line } of sides) await line.typed('true\n', `\n${PROMPT}`)
    const flooded = Buffer.from(FLOOD_LINE.repeat(FLOOD_LINES))
    await sandbox.files.write(FLOOD_FILE, flooded)
    writeFileSync(FLOOD_FILE, flooded)
    await both(echo, BURSTS)
    await both(flood, FLOOD_ROUNDS)
    await both(interrupt, FLOOD_ROUNDS)
  } finally {
    await ours.close()
    await peer.close()
    rmSync(FLOOD_FILE, { force: true })
  }
  return findings(bench)
}

function findings({ samples }: Bench): Finding[] {
  const of = (series: string, statistic: (values: readonly number[]) => number) => ({
    value: statistic(samples.of(series, 'ours')),
    peer: PEER,
    peerValue: statistic(samples.of(series, 'peer')),
  })
  return [
    { id: 'T1', metric: 'terminal echo, p50', unit: 'ms', ...of('T1 echo', median), must: ratioAtMost(3), aim: ratioAtMost(1.5) },
    { id: 'T1', metric: 'terminal echo, p99', unit: 'ms', ...of('T1 echo', p99), must: ratioAtMost(2), aim: ratioAtMost(1) },
    { id: 'T2', metric: 'terminal flood', unit: 'MiB/s', ...of('T2 flood', median), must: ratioAtLeast(0.7), aim: ratioAtLeast(1) },
    { id: 'T2', metric: 'Ctrl-C to prompt under flood', unit: 'ms', ...of('T2 ctrl-c', median), must: valueAtMost(150, 'ms'), aim: valueAtMost(50, 'ms') },
  ]
}

export const terminals: Family = { ids: ['T1', 'T2'], setting: 'no pool', measure }
