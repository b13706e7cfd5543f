/** F1: a file of 32 MiB and a tree of 1,000 files into a sandbox, against `tar | runsc exec -i tar x`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sandbox } from '@sandglass/sdk'
import type { Bench, Family } from '../bench.ts'
import { cachePlace } from '../installation/cache.ts'
import { asOptions, ROOMY } from '../installation/sizes.ts'
import { interleave, timed } from '../measure/interleave.ts'
import { median } from '../measure/statistics.ts'
import { RawGvisor, type RawSandbox } from '../peers/raw-gvisor.ts'
import { ratioAtLeast } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'

const MIB = 1024 * 1024
const FILE_MIB = 32
const TREE_FILES = 1_000
const TREE_FOLDERS = 20
const TREE_FILE_BYTES = 2_048
const ROUNDS = 5
const PEER = 'tar | runsc exec -i tar x'
const TARGET = '/root/bench'

function makeTree(folder: string): void {
  for (let index = 0; index < TREE_FILES; index += 1) {
    const parent = join(folder, `folder-${index % TREE_FOLDERS}`)
    mkdirSync(parent, { recursive: true })
    writeFileSync(join(parent, `file-${index}`), randomBytes(TREE_FILE_BYTES))
  }
}

async function exitOf(child: ChildProcess): Promise<number | string | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? signal))
  })
}

/** @throws Error when either side of the pipe fails */
async function tarInto(raw: RawGvisor, peer: RawSandbox, from: string, what: string): Promise<void> {
  const [program, ...args] = raw.execCommand(peer, ['/bin/tar', '-x', '-C', TARGET])
  const pack = spawn('tar', ['-c', '-C', from, what], { stdio: ['ignore', 'pipe', 'ignore'] })
  const unpack = spawn(program, args, { stdio: [pack.stdout, 'ignore', 'ignore'] })
  const [packed, unpacked] = await Promise.all([exitOf(pack), exitOf(unpack)])
  if (packed !== 0 || unpacked !== 0) throw new Error(`tar | runsc exec tar ended with ${packed} and ${unpacked}`)
}

async function measure(bench: Bench): Promise<Finding[]> {
  await using sandbox = await Sandbox.create({ client: bench.client, resources: asOptions(ROOMY), ttlSeconds: 1_800 })
  await bench.freshness.prove(sandbox)
  await using raw = new RawGvisor({ home: bench.installation.home, scratch: bench.scratch, cache: cachePlace() })
  const peer = await raw.prepare(ROOMY)
  await raw.start(peer, bench.signal)
  const from = join(bench.scratch, 'upload')
  const tree = join(from, 'tree')
  makeTree(tree)
  const bytes = randomBytes(FILE_MIB * MIB)
  writeFileSync(join(from, 'file'), bytes)
  const empty = async (): Promise<void> => {
    const again = ['/bin/sh', '-c', `rm -rf ${TARGET} && mkdir -p ${TARGET}`]
    await Promise.all([sandbox.exec(again, { check: true }), raw.exec(peer, again)])
  }
  const sample = (series: string, side: 'ours' | 'peer', amount: number, unit: string, transfer: () => Promise<unknown>) => ({
    each: 1,
    sample: async (keep: boolean) => {
      await empty()
      const ms = await timed(transfer)
      if (keep) bench.samples.add(series, side, amount / (ms / 1_000), unit)
    },
  })
  await interleave(
    bench.count(ROUNDS),
    [
      sample('F1 file', 'ours', FILE_MIB, 'MiB/s', () => sandbox.files.write(`${TARGET}/file`, bytes)),
      sample('F1 file', 'peer', FILE_MIB, 'MiB/s', () => tarInto(raw, peer, from, 'file')),
      sample('F1 tree', 'ours', TREE_FILES, 'files/s', () => sandbox.files.upload(tree, `${TARGET}/tree`)),
      sample('F1 tree', 'peer', TREE_FILES, 'files/s', () => tarInto(raw, peer, from, 'tree')),
    ],
    bench.signal,
  )
  const of = (series: string) => ({ value: median(bench.samples.of(series, 'ours')), peer: PEER, peerValue: median(bench.samples.of(series, 'peer')) })
  return [
    { id: 'F1', metric: 'upload of 32 MiB', unit: 'MiB/s', ...of('F1 file'), must: ratioAtLeast(1.5), aim: ratioAtLeast(2) },
    { id: 'F1', metric: 'upload of a tree of 1,000 files', unit: 'files/s', ...of('F1 tree'), must: ratioAtLeast(2), aim: ratioAtLeast(4) },
  ]
}

export const upload: Family = { ids: ['F1'], setting: 'no pool', measure }
