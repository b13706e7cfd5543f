/** Where everything of an installation lies on the machine. Pure: names only. */
import { join } from 'node:path'
import { isCanary, type RuntimeName } from '../domain/runtime-name.ts'

export type RuntimePaths = {
  readonly dir: string
  readonly bundle: string
  /** Mounted into the sandbox, read-only: holds `agent` and `channel.sock` and nothing else, because guests can list it. */
  readonly channel: string
  readonly socket: string
  readonly agent: string
  /** Where the runtime keeps its writable layer, an unlinked file. */
  readonly upper: string
  readonly log: string
  /** What a runtime that broke says last. */
  readonly panic: string
}

export type Layout = {
  readonly installation: string
  readonly root: string
  readonly hostRecord: string
  readonly sandboxes: string
  readonly pools: string
  readonly runtimes: string
  readonly runscRoot: string
  readonly templates: string
  readonly guestAgents: string
  readonly probes: string
  /** Tells a supervisor where this agent answers. */
  readonly announcement: string
  /** Of everything that the lease is about; where version 2 counts, it is what the warden freezes. */
  readonly cgroupParent: string
  /** Of canaries, which run without a lease. */
  readonly canaryParent: string
  /** What the warden says of itself. */
  readonly wardenLog: string
  readonly netnsPrefix: string
  runtime(name: RuntimeName): RuntimePaths
  cgroup(name: RuntimeName): string
  netns(name: RuntimeName): string
}

export function layoutOf(root: string, installation: string): Layout {
  const runtimes = join(root, 'run')
  const cgroupParent = `/sandglass-${installation}`
  const canaryParent = `${cgroupParent}-canary`
  const netnsPrefix = `sandglass-${installation}-`
  return {
    installation,
    root,
    hostRecord: join(root, 'host.json'),
    sandboxes: join(root, 'sandboxes'),
    pools: join(root, 'pools'),
    runtimes,
    runscRoot: join(root, 'runsc'),
    templates: join(root, 'templates'),
    guestAgents: join(root, 'guest-agents'),
    probes: join(root, 'probes.json'),
    announcement: join(root, 'agent.json'),
    cgroupParent,
    canaryParent,
    wardenLog: join(root, 'warden.log'),
    netnsPrefix,
    cgroup: (name) => `${isCanary(name) ? canaryParent : cgroupParent}/${name}`,
    netns: (name) => `${netnsPrefix}${name}`,
    runtime(name) {
      const dir = join(runtimes, name)
      const channel = join(dir, 'channel')
      return {
        dir,
        bundle: join(dir, 'bundle'),
        channel,
        socket: join(channel, 'channel.sock'),
        agent: join(channel, 'agent'),
        upper: join(dir, 'upper'),
        log: join(dir, 'runtime.log'),
        panic: join(dir, 'panic.log'),
      }
    },
  }
}
