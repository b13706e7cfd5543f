/**
 * `runc` as a peer, where a row names it: the host agent's own bundle with what only gVisor understands taken out. It gets the template
 * read-only, no channel and no CPU quota, which is less work than ours has.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { LIMITS } from '@sandglass/contract/limits'
import type { Resources } from '@sandglass/contract/sandbox'
import { parserOf } from '@sandglass/contract/schema'
import { type CgroupTree, cgroupPids, findCgroupTree, removeCgroup } from '@sandglass/host-agent/cgroups/cgroup-tree'
import { systemClock } from '@sandglass/host-agent/clock'
import { GUEST_DIRECTORY, gvisorBundle } from '@sandglass/host-agent/drivers/gvisor/bundle'
import { createNamespace, namespacePath, removeNamespace } from '@sandglass/host-agent/network/network-namespace'
import { killUntilGone } from '@sandglass/host-agent/processes/kill-until-gone'
import { runCommand } from '@sandglass/host-agent/processes/run-command'
import Type from 'typebox'
import { type DebianProgram, debianProgram } from './debian.ts'
import { openFilesHard } from './open-files.ts'
import { templateRoot } from './raw-gvisor.ts'

const bundleParser = parserOf(
  Type.Object({
    process: Type.Object({}, { additionalProperties: true }),
    root: Type.Object({}, { additionalProperties: true }),
    mounts: Type.Array(Type.Object({ destination: Type.String() }, { additionalProperties: true })),
  }),
)

export type RawContainer = { readonly name: string; readonly bundle: string }
export type RuncInput = { readonly home: string; readonly scratch: string; readonly cache: string }

export class RawRunc implements AsyncDisposable {
  readonly #program: DebianProgram
  readonly #folder: string
  readonly #root: string
  readonly #group = `/sandglass-bench${randomBytes(4).toString('hex')}`
  readonly #cgroups: CgroupTree = findCgroupTree()
  readonly #made = new Set<RawContainer>()

  private constructor(program: DebianProgram, { home, scratch }: RuncInput) {
    this.#program = program
    this.#folder = join(scratch, 'runc')
    this.#root = templateRoot(home)
  }

  /** @throws Error when there is no runc to be had */
  static async open(input: RuncInput): Promise<RawRunc> {
    return new RawRunc(await debianProgram({ program: 'runc', packages: ['runc'], cache: input.cache }), input)
  }

  /** Everything that is there before the runtime is called; not part of any measurement. */
  async prepare(size: Resources, argv: readonly string[]): Promise<RawContainer> {
    const name = `bench${randomBytes(8).toString('hex')}`
    const container = { name, bundle: join(this.#folder, 'bundles', name) }
    this.#made.add(container)
    await mkdir(container.bundle, { recursive: true })
    await createNamespace(this.#netns(container))
    const bundle = gvisorBundle({
      spec: { resources: size, hostname: 'raw', env: {}, pids_max: LIMITS.sandboxPids },
      yields: false,
      root: this.#root,
      channel: container.bundle,
      cgroup: `${this.#group}/${name}`,
      netns: namespacePath(this.#netns(container)),
      openFilesHard: openFilesHard(),
    })
    await writeFile(join(container.bundle, 'config.json'), JSON.stringify(forRunc(bundle, argv)))
    return container
  }

  /** `runc run` to the end of its command. @returns what it printed */
  async run(container: RawContainer): Promise<string> {
    return this.#toEnd(['run', '--bundle', container.bundle, container.name])
  }

  /** `runc run --detach`. */
  async start(container: RawContainer): Promise<void> {
    await runCommand(this.#program.path, [...this.#flags(), 'run', '--detach', '--bundle', container.bundle, container.name], {
      detached: true,
      env: this.#program.env,
    })
  }

  async exec(container: RawContainer, argv: readonly string[]): Promise<string> {
    return this.#toEnd(['exec', container.name, ...argv])
  }

  async end(container: RawContainer): Promise<void> {
    const group = `${this.#group}/${container.name}`
    await killUntilGone(() => cgroupPids(this.#cgroups, group), systemClock, LIMITS.hostDestroyMs)
    await removeCgroup(this.#cgroups, group, systemClock, LIMITS.hostDestroyMs)
    await removeNamespace(this.#netns(container))
    await rm(join(this.#folder, 'state', container.name), { recursive: true, force: true })
    await rm(container.bundle, { recursive: true, force: true })
    this.#made.delete(container)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const container of this.#made) await this.end(container)
    await removeCgroup(this.#cgroups, this.#group, systemClock, LIMITS.hostDestroyMs)
    await rm(this.#folder, { recursive: true, force: true })
  }

  #netns({ name }: RawContainer): string {
    return `sandglass-${name}`
  }

  #flags(): string[] {
    return ['--root', join(this.#folder, 'state')]
  }

  async #toEnd(args: readonly string[]): Promise<string> {
    const child: ChildProcessByStdio<null, Readable, Readable> = spawn(this.#program.path, [...this.#flags(), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#program.env },
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const [code]: unknown[] = await once(child, 'close')
    if (code !== 0) throw new Error(`runc ${args[0] ?? ''} ended with ${String(code)}: ${stderr.trim().slice(-500)}`)
    return stdout
  }
}

/** No channel, because nothing dials; a read-only root, because the template has no layer of its own here. */
function forRunc(bundle: object, argv: readonly string[]): object {
  const { process, root, mounts } = bundleParser.parse(bundle)
  return {
    ...bundle,
    process: { ...process, args: argv },
    root: { ...root, readonly: true },
    mounts: mounts.filter(({ destination }) => destination !== GUEST_DIRECTORY),
  }
}
