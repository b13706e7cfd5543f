/**
 * The raw runtime as a peer: `runsc` with the host agent's own bundle, command line, network namespace and control group, and nothing of ours
 * around it. Its first process sleeps, because there is no host agent for a guest agent to dial.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newSandboxId, type RuntimeSpec } from '@sandglass/contract'
import { LIMITS } from '@sandglass/contract/limits'
import type { Resources } from '@sandglass/contract/sandbox'
import { type CgroupTree, cgroupPids, findCgroupTree, limitCpu, removeCgroup } from '@sandglass/host-agent/cgroups/cgroup-tree'
import { systemClock } from '@sandglass/host-agent/clock'
import { type RuntimeName, runtimeName } from '@sandglass/host-agent/domain/runtime-name'
import { gvisorBundle } from '@sandglass/host-agent/drivers/gvisor/bundle'
import { removeState, runDetached, runscProcesses } from '@sandglass/host-agent/drivers/gvisor/runsc'
import { createNamespace, namespacePath, removeNamespace } from '@sandglass/host-agent/network/network-namespace'
import { killUntilGone } from '@sandglass/host-agent/processes/kill-until-gone'
import { runCommand } from '@sandglass/host-agent/processes/run-command'
import { type Layout, layoutOf } from '@sandglass/host-agent/state/layout'
import { listMounts, mountsBelow } from '@sandglass/host-agent/storage/mount-table'
import { openGate } from '@sandglass/host-agent/warden/warden'
import { openFilesHard } from './open-files.ts'

const SLEEP = ['/bin/sleep', 'infinity']
const REGION = '00'

export type RawSandbox = { readonly name: RuntimeName; readonly spec: RuntimeSpec; readonly size: Resources }
export type RawInput = { readonly home: string; readonly scratch: string; readonly cache: string }

/** The installation's own mount of its template: the same pages for both sides. @throws Error before the first sandbox */
export function templateRoot(home: string): string {
  const folder = join(home, 'host/templates/')
  const found = listMounts().find(({ point, type }) => type === 'erofs' && point.startsWith(folder))
  if (found === undefined) throw new Error(`no template is mounted below ${folder}`)
  return found.point
}

export class RawGvisor implements AsyncDisposable {
  readonly #runsc: { readonly binary: string; readonly root: string }
  readonly #layout: Layout
  readonly #root: string
  readonly #cgroups: CgroupTree = findCgroupTree()
  readonly #made = new Set<RawSandbox>()

  constructor({ home, scratch, cache }: RawInput) {
    this.#layout = layoutOf(join(scratch, 'raw'), `bench${randomBytes(4).toString('hex')}`)
    this.#runsc = { binary: join(cache, 'bin/runsc'), root: this.#layout.runscRoot }
    this.#root = templateRoot(home)
  }

  /** Everything that is there before the runtime is called; not part of any measurement. */
  async prepare(size: Resources): Promise<RawSandbox> {
    const sandbox = newSandboxId(REGION, randomBytes)
    const name = runtimeName({ sandbox, generation: 0 })
    const paths = this.#layout.runtime(name)
    const spec: RuntimeSpec = {
      sandbox,
      driver: 'gvisor',
      template: { name: 'base', digest: `sha256:${'0'.repeat(64)}` },
      resources: size,
      network: { mode: 'none' },
      hostname: 'raw',
      env: {},
      pids_max: LIMITS.sandboxPids,
    }
    const raw = { name, spec, size }
    this.#made.add(raw)
    for (const folder of [paths.bundle, paths.upper, paths.channel, this.#runsc.root]) await mkdir(folder, { recursive: true })
    await createNamespace(this.#layout.netns(name))
    const bundle = gvisorBundle({
      spec,
      yields: false,
      root: this.#root,
      channel: paths.channel,
      cgroup: this.#layout.cgroup(name),
      netns: namespacePath(this.#layout.netns(name)),
      openFilesHard: openFilesHard(),
    })
    await writeFile(join(paths.bundle, 'config.json'), JSON.stringify(sleeping(bundle)))
    return raw
  }

  /** `runsc run --detach`, with the quota that ours gets at the same moment. */
  async start({ name, spec, size }: RawSandbox, signal: AbortSignal): Promise<void> {
    await runDetached(this.#runsc, openGate, { name, paths: this.#layout.runtime(name), spec, root: this.#root, yields: false }, signal, () => undefined)
    limitCpu(this.#cgroups, this.#layout.cgroup(name), size.vcpu)
  }

  /** The command line of `runsc exec` in it. */
  execCommand({ name }: RawSandbox, argv: readonly string[]): readonly [string, ...string[]] {
    return [this.#runsc.binary, `--root=${this.#runsc.root}`, 'exec', name, ...argv]
  }

  /** Runs a command in it to its end. @returns what it printed */
  async exec(raw: RawSandbox, argv: readonly string[]): Promise<string> {
    const [program, ...args] = this.execCommand(raw, argv)
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code]: unknown[] = await once(child, 'close')
    if (code !== 0) throw new Error(`runsc exec ${argv.join(' ')} ended with ${String(code)}`)
    return Buffer.concat(chunks).toString('utf8')
  }

  pids({ name }: RawSandbox): number[] {
    return [...new Set([...runscProcesses(this.#runsc, name).map(({ pid }) => pid), ...cgroupPids(this.#cgroups, this.#layout.cgroup(name))])]
  }

  async end(raw: RawSandbox): Promise<void> {
    const group = this.#layout.cgroup(raw.name)
    await killUntilGone(() => this.pids(raw), systemClock, LIMITS.hostDestroyMs)
    await removeCgroup(this.#cgroups, group, systemClock, LIMITS.hostDestroyMs)
    await removeState(this.#runsc, raw.name)
    await removeNamespace(this.#layout.netns(raw.name))
    await rm(this.#layout.runtime(raw.name).dir, { recursive: true, force: true })
    this.#made.delete(raw)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const raw of this.#made) await this.end(raw)
    await removeCgroup(this.#cgroups, this.#layout.cgroupParent, systemClock, LIMITS.hostDestroyMs)
    // Starts that were first at the same time have each mounted theirs.
    for (const point of mountsBelow(this.#layout.root)) await runCommand('umount', ['-l', point])
    await rm(this.#layout.root, { recursive: true, force: true })
  }
}

function sleeping(bundle: object): object {
  const process = 'process' in bundle && typeof bundle.process === 'object' ? bundle.process : {}
  return { ...bundle, process: { ...process, args: SLEEP } }
}
