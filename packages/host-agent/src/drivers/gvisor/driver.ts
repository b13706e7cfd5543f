/**
 * gVisor: a kernel in user space (`runsc`, systrap), one sentry per sandbox.
 *
 * There is one way to destroy, and it does not ask the runtime: kill every process that carries the name or sits in the cgroup, then remove
 * what is left. What works for a dead runtime works for a living one, and is exercised by every end. Names are looked for among all processes
 * of the machine unless this process saw the launch to its end: then the runtime has put everything into its group.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LIMITS } from '@sandglass/contract'
import { type CgroupTree, cgroupPids, limitCpu, listCgroups, memoryKills, removeCgroup } from '../../cgroups/cgroup-tree.ts'
import { runtimeUsage } from '../../cgroups/runtime-usage.ts'
import type { Clock } from '../../clock.ts'
import { isCanary, type RuntimeName } from '../../domain/runtime-name.ts'
import { namespacePath } from '../../network/network-namespace.ts'
import { killUntilGone } from '../../processes/kill-until-gone.ts'
import { identify, isAlive, type ProcessIdentity } from '../../processes/process-table.ts'
import type { Layout } from '../../state/layout.ts'
import { type LaunchGate, openGate } from '../../warden/warden.ts'
import type { Driver } from '../contract.ts'
import { gvisorBundle } from './bundle.ts'
import type { GvisorProbe } from './probe.ts'
import { nameOf, type Runsc, removeState, runDetached, runscProcesses, sentryPid, stateFiles } from './runsc.ts'

const LAST_WORDS_BYTES = 512

export type GvisorInput = {
  readonly runsc: Runsc
  readonly layout: Layout
  readonly cgroups: CgroupTree
  readonly clock: Clock
  readonly probe: GvisorProbe
  readonly gate: LaunchGate
}

async function ownOpenFilesHard(): Promise<number> {
  const text = await readFile('/proc/self/limits', 'utf8')
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(text)?.[1]
  return hard === undefined || hard === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(hard)
}

function firstLine(file: string): string {
  const bytes = Buffer.alloc(LAST_WORDS_BYTES)
  try {
    const descriptor = openSync(file, 'r')
    try {
      const [line = ''] = bytes.toString('latin1', 0, readSync(descriptor, bytes)).split('\n')
      return line.replaceAll(/[^\x20-\x7e]/g, '?')
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return ''
  }
}

export function gvisorDriver({ runsc, layout, cgroups, clock, probe, gate }: GvisorInput): Driver {
  const sentries = new Map<RuntimeName, ProcessIdentity>()
  /** Their launch has ended well, so that all their processes are in their groups. */
  const grouped = new Set<RuntimeName>()

  function find(name: RuntimeName): ProcessIdentity | undefined {
    const known = sentries.get(name)
    if (known !== undefined && isAlive(known)) return known
    sentries.delete(name)
    const pid = sentryPid(runsc, name)
    const found = pid === undefined ? undefined : identify(pid)
    if (found !== undefined) sentries.set(name, found)
    return found
  }

  return {
    name: 'gvisor',
    needs: { network: true, template: true, identity: true },
    find,
    probe: (signal) => probe.run(signal),
    async prepare({ name, paths, spec, root, yields }) {
      if (root === null) throw new Error('gVisor needs a template')
      const bundle = gvisorBundle({
        spec,
        yields,
        root,
        channel: paths.channel,
        cgroup: layout.cgroup(name),
        netns: namespacePath(layout.netns(name)),
        openFilesHard: await ownOpenFilesHard(),
      })
      await mkdir(paths.bundle, { recursive: true })
      await mkdir(paths.upper, { recursive: true })
      await mkdir(runsc.root, { recursive: true, mode: 0o700 })
      await writeFile(join(paths.bundle, 'config.json'), JSON.stringify(bundle), { mode: 0o600 })
    },
    async launch(launch, signal, spawned) {
      await runDetached(runsc, isCanary(launch.name) ? openGate : gate, launch, signal, spawned)
      grouped.add(launch.name)
    },
    async limit({ name, vcpu }) {
      limitCpu(cgroups, layout.cgroup(name), vcpu)
    },
    evidence: () => probe.evidence(),
    usage: (name) => runtimeUsage(cgroups, layout.cgroup(name), find(name)?.pid),
    postMortem(name) {
      const kills = memoryKills(cgroups, layout.cgroup(name))
      if (kills > 0) return 'out_of_memory: the sandbox used more memory than its limit'
      const panic = firstLine(layout.runtime(name).panic)
      return panic === '' ? null : `runtime_panic: ${panic}`
    },
    async kill(name) {
      const sentry = sentries.get(name)
      sentries.delete(name)
      // Only once: a kill that is repeated has failed, and looks everywhere.
      const outside = (): number[] => (sentry !== undefined && isAlive(sentry) ? [sentry.pid] : [])
      const named = grouped.delete(name) ? outside : () => runscProcesses(runsc, name).map(({ pid }) => pid)
      const group = layout.cgroup(name)
      await killUntilGone(() => [...named(), ...cgroupPids(cgroups, group)], clock, LIMITS.hostDestroyMs)
    },
    async clean(name) {
      grouped.delete(name)
      await removeCgroup(cgroups, layout.cgroup(name), clock, LIMITS.hostDestroyMs)
      await removeState(runsc, name)
    },
    traces() {
      return {
        process: new Set(runscProcesses(runsc).flatMap((process) => nameOf(process) ?? [])),
        cgroup: new Set([layout.cgroupParent, layout.canaryParent].flatMap((parent) => [...listCgroups(cgroups, parent)])),
        runtime_state: new Set(stateFiles(runsc).map(({ name }) => name)),
      }
    },
  }
}
