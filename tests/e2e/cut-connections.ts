/**
 * Cuts connections behind everybody's back, as a network does: a duplicate of the socket is taken out of the process that holds it and shut
 * down, so both ends see an end that neither of them made. Needs no tool but Debian's own perl, which can make a system call.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { livingRole } from '../failure/roles.ts'

/** Gateway ↔ host is TCP to the host agent's data plane; host ↔ guest is the unix socket in a sandbox's channel directory. */
export type Place = 'gateway-host' | 'host-guest'

/** pidfd_open, pidfd_getfd, shutdown(both) by their numbers on x86-64. */
const SHUTDOWN = `my ($pid, @fds) = @ARGV;
my $process = syscall(434, $pid + 0, 0);
die "pidfd_open: $!" if $process < 0;
for my $fd (@fds) {
  my $socket = syscall(438, $process, $fd + 0, 0);
  next if $socket < 0;
  syscall(48, $socket, 2);
}`
const ESTABLISHED = '01'
const LISTENING = '0A'
const CONNECTED = '03'

/** Descriptors of a process that are sockets, by inode. */
function socketsOf(pid: number): Map<string, string> {
  const sockets = new Map<string, string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      if (inode !== undefined) sockets.set(inode, fd)
    } catch {
      // It was closed while it was looked at.
    }
  }
  return sockets
}

const rows = (path: string): string[][] =>
  readFileSync(path, 'latin1')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))

/** Inodes of established connections to a port that the process itself listens on. */
function acceptedTcp(sockets: ReadonlyMap<string, string>): string[] {
  const table = rows('/proc/net/tcp').map((row) => ({ local: row[1] ?? '', state: row[3] ?? '', inode: row[9] ?? '' }))
  const own = table.filter(({ inode }) => sockets.has(inode))
  const ports = new Set(own.filter(({ state }) => state === LISTENING).map(({ local }) => local.split(':')[1]))
  return own.filter(({ state, local }) => state === ESTABLISHED && ports.has(local.split(':')[1])).map(({ inode }) => inode)
}

/** One process of each network namespace: a socket that was accepted is shown in the namespace of the one that dialled. */
function inhabitants(): string[] {
  const byNamespace = new Map<string, string>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      byNamespace.set(readlinkSync(`/proc/${pid}/ns/net`), pid)
    } catch {
      // It ended while it was looked at.
    }
  }
  return [...byNamespace.values()]
}

/** Inodes of accepted connections of channels: the end that was accepted carries the listener's name. */
function acceptedGuests(sockets: ReadonlyMap<string, string>): string[] {
  return inhabitants()
    .flatMap((pid) => rows(`/proc/${pid}/net/unix`))
    .filter((row) => row[5] === CONNECTED && row[7]?.endsWith('/channel.sock') === true && sockets.has(row[6] ?? ''))
    .map((row) => row[6] ?? '')
}

/** @returns how many connections were cut */
export function cutConnections(home: string, place: Place): number {
  const host = livingRole(home, 'host-agent')
  if (host === undefined) throw new Error('the host agent does not live')
  const sockets = socketsOf(host.pid)
  const inodes = place === 'gateway-host' ? acceptedTcp(sockets) : acceptedGuests(sockets)
  const fds = inodes.map((inode) => sockets.get(inode) ?? '').filter((fd) => fd !== '')
  if (fds.length > 0) execFileSync('perl', ['-e', SHUTDOWN, String(host.pid), ...fds])
  return fds.length
}
