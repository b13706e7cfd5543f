/** Checks of the machine itself: may it run an installation at all? */
import { bytesText } from '../text.ts'
import { type Check, fail, ok, warn } from './check.ts'
import type { Machine } from './machine.ts'

const MiB = 1024 * 1024
const GiB = 1024 * MiB
const KERNEL_FLOOR = [5, 10] as const
const MEMORY_WANTED_BYTES = 2 * GiB
const DISK_FAIL_BYTES = 1 * GiB
const DISK_WARN_BYTES = 5 * GiB
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const

const user: Check = {
  name: 'user',
  run: ({ uid }) => (uid === 0 ? ok('root') : warn(`uid ${uid}`, 'Starting an installation needs root; using one does not.', 'sudo ./sandglass up')),
}

const kernel: Check = {
  name: 'kernel',
  run({ kernel: release }) {
    const [major = 0, minor = 0] = release.split('.').map(Number)
    const new_enough = major > KERNEL_FLOOR[0] || (major === KERNEL_FLOOR[0] && minor >= KERNEL_FLOOR[1])
    return new_enough
      ? ok(release)
      : fail(release, `Sandglass is tried on ${KERNEL_FLOOR.join('.')} and newer.`, 'apt-get install linux-image-amd64, then reboot')
  },
}

const size: Check = {
  name: 'size',
  run({ cpus, memoryBytes }) {
    const saw = `${cpus} CPUs, ${bytesText(memoryBytes)} memory`
    return memoryBytes < MEMORY_WANTED_BYTES ? warn(saw, 'Only a few small sandboxes fit.', 'give the machine 2 GB or more') : ok(saw)
  },
}

/** A kernel module may not be loaded yet: mounting loads it, so what counts is whether it can be. */
async function hasFileSystem(machine: Machine, name: string): Promise<boolean> {
  if (new RegExp(`\\b${name}$`, 'm').test((await machine.read('/proc/filesystems')) ?? '')) return true
  const modprobe = await machine.program('modprobe')
  return modprobe !== undefined && (await machine.run(modprobe, ['--dry-run', name]))?.code === 0
}

const erofs: Check = {
  name: 'erofs',
  run: async (machine) =>
    (await hasFileSystem(machine, 'erofs'))
      ? ok('known to the kernel')
      : fail('not known to the kernel', 'Templates are EROFS files and cannot be mounted.', 'modprobe erofs'),
}

const loop: Check = {
  name: 'loop devices',
  run: async (machine) =>
    (await machine.file('/dev/loop-control')) === undefined
      ? fail('/dev/loop-control is missing', 'Templates are mounted through loop devices.', 'modprobe loop')
      : ok('/dev/loop-control'),
}

const networkNamespaces: Check = {
  name: 'network namespaces',
  async run(machine) {
    const ip = await machine.program('ip')
    if (ip === undefined) return fail('ip is not installed', 'Every sandbox gets a network namespace of its own.', 'apt-get install iproute2')
    return (await machine.file('/proc/self/ns/net')) === undefined
      ? fail('the kernel has none', 'Every sandbox gets a network namespace of its own.', 'use a kernel with CONFIG_NET_NS')
      : ok(ip)
  },
}

async function cgroupVersion(machine: Machine): Promise<{ version: string; missing: string[] }> {
  const controllers = (await machine.read('/sys/fs/cgroup/cgroup.controllers'))?.trim().split(' ')
  if (controllers !== undefined) return { version: 'v2', missing: CONTROLLERS.filter((name) => !controllers.includes(name)) }
  const missing: string[] = []
  for (const name of CONTROLLERS) if ((await machine.file(`/sys/fs/cgroup/${name}`)) === undefined) missing.push(name)
  return { version: 'v1', missing }
}

const cgroups: Check = {
  name: 'cgroups',
  async run(machine) {
    const { version, missing } = await cgroupVersion(machine)
    if (missing.length === 0) return ok(`${version} with ${CONTROLLERS.join(', ')}`)
    return fail(
      `no ${missing.join(', ')} (${version})`,
      'Limits of CPU, memory and processes cannot be enforced.',
      'mount the controllers, or boot with systemd.unified_cgroup_hierarchy=1',
    )
  },
}

function disk(what: 'home' | 'cache'): Check {
  return {
    name: `disk of ${what}`,
    async run(machine) {
      const path = machine[what]
      const free = (await machine.freeBytes(path)) ?? (await machine.freeBytes('/var'))
      if (free === undefined) return warn(`${path} cannot be looked at`, 'Free space is unknown.', `df ${path}`)
      const saw = `${bytesText(free)} free at ${path}`
      if (free < DISK_FAIL_BYTES)
        return fail(saw, 'Sandboxes will run out of space.', `free some space, or set SANDGLASS_${what.toUpperCase()} to a larger disk`)
      if (free < DISK_WARN_BYTES)
        return warn(saw, 'Little room for writable layers.', `free some space, or set SANDGLASS_${what.toUpperCase()} to a larger disk`)
      return ok(saw)
    },
  }
}

export const MACHINE_CHECKS: readonly Check[] = [user, kernel, size, erofs, loop, networkNamespaces, cgroups, disk('home'), disk('cache')]
