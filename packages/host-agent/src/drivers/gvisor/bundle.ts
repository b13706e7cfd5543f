/**
 * The OCI configuration of a gVisor sandbox. Pure.
 *
 * The root is the shared, read-only template; everything written goes into the runtime's own layer, which is one unlinked file of limited
 * size. No CPU quota stands here: it would throttle the start itself, so it is set when the guest answers. The host's pids limit is a loose
 * backstop, because the sentry panics when it meets one; the guest's own limit is set inside, by its agent.
 */
import { LIMITS } from '@sandglass/contract'
import { cpuShares } from '../../cgroups/cgroup-tree.ts'
import type { LaunchSpec } from '../contract.ts'

const MIB = 1024 * 1024
const HOST_TASKS_PER_GUEST_TASK = 8
const HOST_TASKS_SPARE = 1_024
const SHM_MB = 64
/** A pool member that boots gets so much less of busy CPUs than a sandbox; less still, and it would not come up within its time. */
const YIELDING = 8
const OPEN_FILES_SOFT = 1_024
const OPEN_FILES_HARD = 65_536

/** Docker's default set without NET_RAW. Of gVisor's own kernel, never of the host's. */
const CAPABILITIES = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FSETID',
  'CAP_FOWNER',
  'CAP_SETGID',
  'CAP_SETUID',
  'CAP_SETPCAP',
  'CAP_NET_BIND_SERVICE',
  'CAP_SYS_CHROOT',
  'CAP_KILL',
  'CAP_AUDIT_WRITE',
  'CAP_SETFCAP',
  'CAP_MKNOD',
]

/** For the guest agent alone, which gives a pool member its hostname: it leaves the bounding set before anything else runs. */
const AGENT_CAPABILITIES = [...CAPABILITIES, 'CAP_SYS_ADMIN']

export const GUEST_DIRECTORY = '/run/sandglass'

export type BundleInput = {
  readonly spec: LaunchSpec
  readonly yields: boolean
  readonly root: string
  readonly channel: string
  readonly cgroup: string
  readonly netns: string
  /** This process's own hard limit of open files: a sandbox can be given less, never more. */
  readonly openFilesHard: number
}

export function gvisorBundle({ spec, yields, root, channel, cgroup, netns, openFilesHard }: BundleInput): object {
  const { memory_mb: memoryMb, vcpu } = spec.resources
  const hardFiles = Math.min(OPEN_FILES_HARD, openFilesHard)
  return {
    ociVersion: '1.2.1',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [`${GUEST_DIRECTORY}/agent`, '--channel', `${GUEST_DIRECTORY}/channel.sock`],
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8', 'HOME=/root'],
      cwd: '/',
      capabilities: { bounding: AGENT_CAPABILITIES, effective: AGENT_CAPABILITIES, permitted: AGENT_CAPABILITIES },
      rlimits: [
        { type: 'RLIMIT_NOFILE', hard: hardFiles, soft: Math.min(OPEN_FILES_SOFT, hardFiles) },
        { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
      ],
      // Nothing setuid works inside: gVisor ignores those bits unless it is told otherwise.
      noNewPrivileges: false,
    },
    root: { path: root, readonly: false },
    hostname: spec.hostname,
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'] },
      { destination: '/dev/pts', type: 'devpts', source: 'devpts', options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'] },
      { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'nodev', 'mode=1777', `size=${SHM_MB}m`] },
      { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
      { destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: ['nosuid', 'noexec', 'nodev', 'relatime'] },
      { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', `size=${Math.floor(memoryMb / 2)}m`] },
      { destination: GUEST_DIRECTORY, type: 'bind', source: channel, options: ['bind', 'ro', 'nosuid', 'nodev'] },
    ],
    linux: {
      cgroupsPath: cgroup,
      resources: {
        memory: { limit: (memoryMb + LIMITS.runtimeMemoryOverheadMb) * MIB },
        cpu: { shares: yields ? Math.max(2, Math.round(cpuShares(vcpu) / YIELDING)) : cpuShares(vcpu) },
        pids: { limit: spec.pids_max * HOST_TASKS_PER_GUEST_TASK + HOST_TASKS_SPARE },
      },
      namespaces: [{ type: 'pid' }, { type: 'ipc' }, { type: 'uts' }, { type: 'mount' }, { type: 'network', path: netns }],
    },
  }
}
