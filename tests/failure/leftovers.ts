/**
 * What of an installation exists on this machine, read from the kernel and the file system: /proc, mountinfo, cgroup hierarchies, network
 * namespaces, loop devices, sockets, directories, and what the warden keeps below /run/sandglass. It is the witness against the product's own census, so it uses no product code.
 *
 *   node tests/failure/leftovers.ts HOME [installation] [--live ID,ID…]
 *
 * prints what exists; with --live, what differs from those sandboxes being alive and no other, and exits with 1 when anything does.
 *
 * Something belongs to an installation when it names its home directory, or the installation's name where names of the machine are shared
 * (cgroups, network namespaces). It belongs to a sandbox when it carries that sandbox's id, or the name of the pool member that became the sandbox,
 * as the sandbox's record says.
 */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

export type Thing = {
  readonly kind: 'process' | 'mount' | 'cgroup' | 'netns' | 'loop' | 'socket' | 'file' | 'record'
  readonly what: string
  /** Id of the sandbox that it belongs to, or of a pool member that nobody has claimed; null for what the installation shares. */
  readonly sandbox: string | null
}

export type Installation = {
  readonly home: string
  /** As in the names of cgroups and network namespaces. Absent: as an installation in that home calls itself. */
  readonly name?: string | undefined
}

const SANDBOX_ID = /sb[a-z0-9]{2}[a-z2-7]{16}|(?<![a-z0-9])pm[a-z2-7]{16}(?![a-z0-9])/
const RECORDED_MEMBER = /"name":"(pm[a-z2-7]{16})"/
const PREFIX = 'sandglass-'
const MAX_DEPTH = 6

const sandboxIn = (text: string): string | null => SANDBOX_ID.exec(text)?.[0] ?? null

/** A file of /proc or /sys may go away at any moment; that is an answer, too. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Does the text name the directory or something below it? `/a/b` does not name `/a/bc`. */
function names(text: string, directory: string): boolean {
  for (let at = text.indexOf(directory); at !== -1; at = text.indexOf(directory, at + 1)) {
    const after = text.charAt(at + directory.length)
    if (after === '' || /[/\0\s:,;'")]/.test(after)) return true
  }
  return false
}

/** The first eight hexadecimal digits of the SHA-256 of its home's path. */
export const nameOfHome = (home: string): string => createHash('sha256').update(home).digest('hex').slice(0, 8)

/** What the warden of an installation keeps: lock, socket, deadline. */
const wardenPlace = ({ home, name }: Installation): string => join('/run/sandglass', name ?? nameOfHome(home))

/** The names under which the installation is known to the kernel. */
function isOurs(installation: Installation, name: string): boolean {
  const own = `${PREFIX}${installation.name ?? nameOfHome(installation.home)}`
  return name === own || name.startsWith(`${own}-`)
}

type Mount = { readonly id: string; readonly device: string; readonly root: string; readonly point: string; readonly type: string; readonly source: string }

function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function mounts(): Mount[] {
  return read('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ')
      const separator = fields.indexOf('-')
      return {
        id: fields[0] ?? '',
        device: fields[2] ?? '',
        root: unescaped(fields[3] ?? ''),
        point: unescaped(fields[4] ?? ''),
        type: fields[separator + 1] ?? '',
        source: unescaped(fields[separator + 2] ?? ''),
      }
    })
}

type Stat = { readonly name: string; readonly state: string; readonly parent: number; readonly startTime: string }

export function processStat(pid: number): Stat | undefined {
  const text = read(`/proc/${pid}/stat`)
  if (text === '') return undefined
  const close = text.lastIndexOf(')')
  const rest = text.slice(close + 2).split(' ')
  return { name: text.slice(text.indexOf('(') + 1, close), state: rest[0] ?? '', parent: Number(rest[1]), startTime: rest[19] ?? '' }
}

/** This process and those that started it: their arguments name a home because they look at it. */
function ancestry(): Set<number> {
  const all = new Set<number>()
  for (let pid = process.pid; pid > 0 && !all.has(pid); pid = processStat(pid)?.parent ?? 0) all.add(pid)
  return all
}

const isZombie = (stat: Stat): boolean => stat.state === 'Z' || stat.state === 'X'

function processes(installation: Installation, ignored: ReadonlySet<number>): Thing[] {
  const things: Thing[] = []
  for (const entry of list('/proc')) {
    if (!/^\d+$/.test(entry) || ignored.has(Number(entry))) continue
    const stat = processStat(Number(entry))
    // A zombie holds nothing; its parent will read it or not.
    if (stat === undefined || isZombie(stat)) continue
    const argv = read(`/proc/${entry}/cmdline`)
    const groups = read(`/proc/${entry}/cgroup`)
    const group = groups.split('\n').find((line) =>
      line
        .split(':')
        .slice(2)
        .join(':')
        .split('/')
        .some((part) => isOurs(installation, part)),
    )
    const places = [link(`/proc/${entry}/cwd`), link(`/proc/${entry}/root`), link(`/proc/${entry}/exe`)]
    const named = [argv, read(`/proc/${entry}/environ`), ...places].find((text) => names(text, installation.home) || names(text, wardenPlace(installation)))
    if (group === undefined && named === undefined) continue
    const command = argv.replaceAll('\0', ' ').trim()
    things.push({
      kind: 'process',
      what: `${entry} ${(command === '' ? `[${stat.name}]` : command).slice(0, 200)}`,
      sandbox: sandboxIn(group ?? '') ?? sandboxIn(argv) ?? sandboxIn(named ?? ''),
    })
  }
  return things
}

function mountThings(installation: Installation): Thing[] {
  return mounts()
    .filter(
      (mount) =>
        names(mount.point, installation.home) ||
        names(mount.source, installation.home) ||
        names(mount.root, installation.home) ||
        isOurs(installation, basename(mount.point)),
    )
    .map((mount) => ({ kind: 'mount', what: `${mount.point} (${mount.type} ${mount.source})`, sandbox: sandboxIn(mount.point) }))
}

function cgroups(installation: Installation): Thing[] {
  const things: Thing[] = []
  const walk = (directory: string, path: string, inside: boolean, depth: number): void => {
    for (const name of list(directory)) {
      const child = join(directory, name)
      if (depth > MAX_DEPTH || !isDirectory(child)) continue
      const ours = inside || isOurs(installation, name)
      if (ours) things.push({ kind: 'cgroup', what: child, sandbox: sandboxIn(join(path, name)) })
      walk(child, join(path, name), ours, depth + 1)
    }
  }
  const roots = mounts().filter((mount) => mount.type === 'cgroup' || mount.type === 'cgroup2')
  for (const { point } of roots) walk(point, '/', false, 0)
  return things
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** A name in /run/netns is a leftover also when no namespace is bound to it any more. */
function namedNamespaces(installation: Installation): Thing[] {
  return list('/run/netns')
    .filter((name) => isOurs(installation, name))
    .map((name) => ({ kind: 'netns', what: `/run/netns/${name}`, sandbox: sandboxIn(name) }))
}

/** Loop devices whose file is below the home, and those that carry one of the installation's mounts. */
function loops(installation: Installation): Thing[] {
  const carrying = new Set(
    mounts()
      .filter((mount) => names(mount.point, installation.home))
      .map((mount) => mount.device),
  )
  return list('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map((name) => ({ name, file: read(`/sys/block/${name}/loop/backing_file`).trim(), device: read(`/sys/block/${name}/dev`).trim() }))
    .filter(({ file, device }) => file !== '' && (names(file, installation.home) || carrying.has(device)))
    .map(({ name, file }) => ({ kind: 'loop', what: `/dev/${name} ${file}`, sandbox: sandboxIn(file) }))
}

/** Listening and connected unix sockets by their path; the file may be gone already. */
function sockets(installation: Installation): Thing[] {
  const paths = new Set(
    read('/proc/net/unix')
      .split('\n')
      .map((line) => line.trim().split(/\s+/)[7] ?? '')
      .filter((path) => names(path, join(installation.home, 'host'))),
  )
  return [...paths].map((path) => ({ kind: 'socket', what: path, sandbox: sandboxIn(path) }))
}

/**
 * Files and directories of sandboxes below the home. A thing below a directory that is already reported for the same sandbox is not
 * reported again. Records are apart: a host keeps them on purpose for a while after an end.
 */
function files(installation: Installation): Thing[] {
  const host = join(installation.home, 'host')
  const points = new Set(mounts().map((mount) => mount.point))
  const things: Thing[] = []
  const walk = (directory: string, depth: number): void => {
    for (const name of list(directory)) {
      const path = join(directory, name)
      const sandbox = sandboxIn(name)
      if (sandbox !== null) things.push({ kind: directory === join(host, 'sandboxes') && name === `${sandbox}.json` ? 'record' : 'file', what: path, sandbox })
      else if (depth < MAX_DEPTH && !points.has(path) && isDirectory(path)) walk(path, depth + 1)
    }
  }
  walk(host, 0)
  if (isDirectory(wardenPlace(installation))) things.push({ kind: 'file', what: wardenPlace(installation), sandbox: null })
  return things
}

/** Sandboxes by the pool member that each has become. */
function ownersOfMembers(home: string): Map<string, string> {
  const records = join(home, 'host/sandboxes')
  const owners = new Map<string, string>()
  for (const name of list(records)) {
    const member = RECORDED_MEMBER.exec(read(join(records, name)))?.[1]
    if (member !== undefined) owners.set(member, basename(name, '.json'))
  }
  return owners
}

/** @param ignored pids to look away from, beside this process and its ancestors */
export function inventory(installation: Installation, ignored: readonly number[] = []): Thing[] {
  const home = resolve(installation.home)
  const exact = { home, name: installation.name ?? nameOfHome(home) }
  const owners = ownersOfMembers(home)
  const things = [
    ...processes(exact, new Set([...ancestry(), ...ignored])),
    ...mountThings(exact),
    ...cgroups(exact),
    ...namedNamespaces(exact),
    ...loops(exact),
    ...sockets(exact),
    ...files(exact),
  ]
  return things.map((thing) => ({ ...thing, sandbox: owners.get(thing.sandbox ?? '') ?? thing.sandbox }))
}

/** A pool member that is whole has these; what has less of it is a leftover. */
const OF_A_MEMBER = ['process', 'file'] as const

const isMember = (id: string): boolean => id.startsWith('pm')

/** Pool members that are whole. */
export function wholeMembers(things: readonly Thing[]): Set<string> {
  const ids = new Set(things.flatMap(({ sandbox }) => (sandbox !== null && isMember(sandbox) ? [sandbox] : [])))
  return new Set([...ids].filter((id) => OF_A_MEMBER.every((kind) => things.some((thing) => thing.sandbox === id && thing.kind === kind))))
}

/** Every sandbox that runs here leaves at least these. */
const OF_A_LIVE_ONE = ['process', 'cgroup', 'netns', 'file', 'record'] as const

/**
 * Compares what exists with what should, both ways. Pool members that are whole may exist.
 * @param live ids of the sandboxes that the API calls ready
 * @returns one line for each thing that has no right to exist, and for each that is missing
 */
export function differences(things: readonly Thing[], live: ReadonlySet<string>): string[] {
  const lines: string[] = []
  const members = wholeMembers(things)
  for (const thing of things) {
    if (thing.sandbox === null || live.has(thing.sandbox) || members.has(thing.sandbox) || thing.kind === 'record') continue
    lines.push(`left over: ${thing.kind} ${thing.what}`)
  }
  for (const id of live) {
    for (const kind of OF_A_LIVE_ONE) {
      if (!things.some((thing) => thing.sandbox === id && thing.kind === kind)) lines.push(`missing: ${kind} of ${id}`)
    }
  }
  return lines
}

/** What may stay when no sandbox is left but the host agent runs: pool members that are whole, the template's mount and its loop device, the runtime's null namespace, parent groups, the warden and what it keeps. */
export function unshared(things: readonly Thing[], home: string): string[] {
  const host = join(resolve(home), 'host')
  const members = wholeMembers(things)
  const shared = (thing: Thing): boolean => {
    if (thing.sandbox !== null) return members.has(thing.sandbox)
    if (thing.kind === 'mount')
      return (
        (thing.what.startsWith(join(host, 'templates/')) && thing.what.includes(' (erofs ')) ||
        thing.what.startsWith(`${join(host, 'runsc/null-netns')} (nsfs `)
      )
    if (thing.kind === 'cgroup') return basename(thing.what).startsWith(PREFIX)
    if (thing.kind === 'file') return thing.what.startsWith('/run/sandglass/')
    return thing.kind === 'loop' || thing.kind === 'process' || thing.kind === 'socket'
  }
  return things.filter((thing) => !shared(thing)).map((thing) => `left over: ${thing.kind} ${thing.what}`)
}

function main(args: readonly string[]): number {
  const flag = args.indexOf('--live')
  const [home, name] = flag === -1 ? args : args.slice(0, flag)
  if (home === undefined || !existsSync(home)) {
    process.stderr.write('usage: node tests/failure/leftovers.ts HOME [installation] [--live ID,ID…]\n')
    return 2
  }
  const things = inventory({ home, name })
  const ids = (args[flag + 1] ?? '').split(',').filter((id) => id !== '')
  const lines =
    flag === -1 ? things.map((thing) => `${thing.kind.padEnd(8)} ${(thing.sandbox ?? '-').padEnd(20)} ${thing.what}`) : differences(things, new Set(ids))
  for (const line of lines) process.stdout.write(`${line}\n`)
  return flag !== -1 && lines.length > 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2))
