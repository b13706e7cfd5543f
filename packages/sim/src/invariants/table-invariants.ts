/** What must hold between one committed state of the tables and the next. Pure: each answers with a sentence when it is broken. */
import { type AssignmentState, type HostState, live, type SandboxState, type Snapshot } from './snapshot.ts'

export type Broken = string

const AMOUNTS = ['vcpu_milli', 'memory_mb', 'disk_gb'] as const
type Amount = (typeof AMOUNTS)[number]

const sum = (items: readonly { readonly [key in Amount]: number }[], amount: Amount): number => items.reduce((total, item) => total + item[amount], 0)

/** Of one state alone. */
export function* brokenNow(now: Snapshot): Generator<Broken> {
  const held = live(now)
  for (const host of now.hosts) yield* brokenReservations(now, host, held)
  yield* brokenQuota(now, held)
  const seen = new Set<string>()
  for (const assignment of held) {
    if (seen.has(assignment.sandbox)) yield `sandbox ${assignment.sandbox} has two live assignments`
    seen.add(assignment.sandbox)
    const sandbox = now.sandboxes.find(({ id }) => id === assignment.sandbox)
    if (sandbox === undefined || assignment.generation > sandbox.generation) yield `the live assignment of ${assignment.sandbox} is ahead of its sandbox`
  }
  yield* brokenUsage(now, held)
  for (const { route, subject } of now.keys) {
    if (route === 'POST /v1/sandboxes' && !now.sandboxes.some(({ id }) => id === subject))
      yield `an idempotency key names sandbox ${subject}, which does not exist`
  }
  if (now.feed_holes > 0) yield 'the change feed has a hole or gives a position twice'
}

function* brokenReservations(now: Snapshot, host: HostState, held: readonly AssignmentState[]): Generator<Broken> {
  const assigned = held.filter((assignment) => assignment.host === host.id)
  const pools = now.pools.filter((pool) => pool.host === host.id)
  for (const amount of AMOUNTS) {
    const reserved = host[`${amount}_reserved`]
    const units = amount === 'vcpu_milli' ? 0 : pools.reduce((total, pool) => total + pool.held * pool[amount], 0)
    if (reserved > host[`${amount}_capacity`]) yield `${host.name} has ${reserved} ${amount} reserved and only ${host[`${amount}_capacity`]}`
    const expected = sum(assigned, amount) + units
    if (reserved !== expected) yield `${host.name} has ${reserved} ${amount} reserved; its assignments and pools hold ${expected}`
  }
}

function* brokenQuota(now: Snapshot, held: readonly AssignmentState[]): Generator<Broken> {
  for (const sandbox of now.sandboxes) {
    const should = sandbox.desired === 'running' || held.some((assignment) => assignment.sandbox === sandbox.id)
    if (sandbox.quota_held !== should) yield `${sandbox.id} (${sandbox.desired}, ${sandbox.observed}) ${should ? 'holds no quota' : 'holds quota still'}`
  }
  const [quota] = now.quotas
  if (quota === undefined) return
  const counted = now.sandboxes.filter(({ quota_held }) => quota_held)
  if (quota.running !== counted.length) yield `the quota counts ${quota.running} sandboxes; ${counted.length} hold it`
  if (quota.running > quota.running_limit) yield `${quota.running} sandboxes are running with a quota of ${quota.running_limit}`
  for (const amount of AMOUNTS) {
    if (quota[amount] !== sum(counted, amount)) yield `the quota counts ${quota[amount]} ${amount}; the sandboxes that hold it have ${sum(counted, amount)}`
  }
  const kept = now.sandboxes.filter(({ desired, quota_held }) => desired === 'stopped' && !quota_held).length
  if (quota.kept !== kept) yield `the quota counts ${quota.kept} kept records; there are ${kept}`
}

function* brokenUsage(now: Snapshot, held: readonly AssignmentState[]): Generator<Broken> {
  for (const [index, interval] of now.usage.entries()) {
    const { sandbox, generation, closed_ms: closedMs } = interval
    const assignment = now.assignments.find((one) => one.sandbox === sandbox && one.generation === generation)
    if (assignment === undefined) yield `usage of ${sandbox} is counted for generation ${generation}, which no host had`
    const isLive = held.some((one) => one.sandbox === sandbox && one.generation === generation)
    if (closedMs === null && !isLive) yield `usage of ${sandbox} generation ${generation} is still counted after its release`
    const host = now.hosts.find(({ id }) => id === assignment?.host)
    const isOver = assignment !== undefined && host !== undefined && host.epoch > assignment.epoch
    if (closedMs !== null && isLive && !isOver) yield `usage of ${sandbox} generation ${generation} is closed and its assignment is live`
    if (closedMs === null && isOver && !host.held) yield `usage of ${sandbox} generation ${generation} is counted behind the fence of ${host.name}`
    const next = now.usage[index + 1]
    if (next?.sandbox === sandbox && (closedMs === null || closedMs > next.opened_ms)) yield `usage intervals of ${sandbox} overlap`
  }
}

export type Committed = { readonly texts: readonly string[] }

/** Of two states that follow one another. */
export function* brokenSince(before: Snapshot, now: Snapshot, { texts }: Committed): Generator<Broken> {
  const told = (action: string, subject: string): boolean => (now.audit[`${action} ${subject}`] ?? 0) > (before.audit[`${action} ${subject}`] ?? 0)
  const known = new Map(before.sandboxes.map((sandbox) => [sandbox.id, sandbox]))
  const there = new Set(now.sandboxes.map(({ id }) => id))
  for (const { id } of before.sandboxes) if (!there.has(id)) yield `sandbox ${id} is no more`
  let moved = false
  for (const sandbox of now.sandboxes) {
    const was = known.get(sandbox.id)
    if (was === undefined) {
      if (!told('sandbox.create', sandbox.id)) yield `the create of ${sandbox.id} has no audit row`
      if ((now.events[sandbox.id] ?? 0) === 0) yield `the create of ${sandbox.id} has no event`
      continue
    }
    const changed = was.observed !== sandbox.observed || was.generation !== sandbox.generation
    moved ||= changed
    if (changed && (now.events[sandbox.id] ?? 0) <= (before.events[sandbox.id] ?? 0))
      yield `${sandbox.id} went from ${was.observed} to ${sandbox.observed} without an event`
    yield* brokenMove(was, sandbox, now, told)
  }
  if (moved && !texts.some((text) => text.includes('sandglass.outbox'))) yield 'a sandbox moved and nothing was left in the outbox for other replicas'
  yield* brokenHosts(before, now, told)
  const ended = new Map(now.operations.map((operation) => [operation.id, operation.status]))
  for (const { id, status } of before.operations)
    if (status !== 'pending' && ended.get(id) !== status) yield `operation ${id} was ${status} and is ${ended.get(id)}`
}

type Told = (action: string, subject: string) => boolean

function* brokenMove(was: SandboxState, is: SandboxState, now: Snapshot, told: Told): Generator<Broken> {
  if (is.generation < was.generation) yield `the generation of ${is.id} went from ${was.generation} back to ${is.generation}`
  if (was.desired !== is.desired && is.generation === was.generation) yield `${is.id} is wanted ${is.desired} and its generation stayed ${is.generation}`
  if (was.desired === 'deleted' && is.desired !== 'deleted') yield `${is.id} was deleted and is wanted ${is.desired} again`
  if (was.observed === 'terminated' && is.observed !== 'terminated') yield `${is.id} was terminated and is ${is.observed}`
  if (was.desired !== 'deleted' && is.desired === 'deleted' && !told('sandbox.delete', is.id)) yield `the delete of ${is.id} has no audit row`
  if (was.desired === 'stopped' && is.desired === 'running' && !told('sandbox.start', is.id)) yield `the start of ${is.id} has no audit row`
  if (was.desired === 'running' && /^stop/.test(is.observed) && is.desired === 'stopped' && !told('sandbox.stop', is.id))
    yield `the stop of ${is.id} has no audit row`
  if (was.generation !== is.generation && is.reason?.startsWith('host_drained') === true && was.reason !== is.reason && !told('sandbox.retire', is.id)) {
    yield `${is.id} was retired for a drain without an audit row`
  }
  if (/^(assigned|starting|ready)$/.test(was.observed) && is.observed === 'pending' && is.generation === was.generation)
    yield `${is.id} starts again in generation ${is.generation}`
  if (was.observed !== 'ready' && is.observed === 'ready') {
    const assignment = live(now).find(({ sandbox }) => sandbox === is.id)
    const host = now.hosts.find(({ id }) => id === assignment?.host)
    if (assignment?.generation !== is.generation) yield `${is.id} became ready in generation ${is.generation}; its assignment has ${assignment?.generation}`
    else if (assignment.epoch !== host?.epoch) yield `${is.id} became ready in epoch ${assignment.epoch} of a host that holds ${host?.epoch}`
  }
}

function* brokenHosts(before: Snapshot, now: Snapshot, told: Told): Generator<Broken> {
  const known = new Map(before.hosts.map((host) => [host.id, host]))
  for (const host of now.hosts) {
    const was = known.get(host.id)
    if (was === undefined) continue
    if (host.epoch < was.epoch || host.seq < was.seq) yield `the lease of ${host.name} went back from ${was.epoch}/${was.seq} to ${host.epoch}/${host.seq}`
    if (host.epoch !== was.epoch && !told('host.register', host.id) && !told('host.fence', host.id)) yield `${host.name} has a new epoch without an audit row`
    if (host.cordoned !== was.cordoned) {
      const actions = host.cordoned ? ['host.cordon', 'host.drain', 'host.remove'] : ['host.uncordon']
      if (!actions.some((action) => told(action, host.id))) yield `${host.name} was ${host.cordoned ? 'cordoned' : 'uncordoned'} without an audit row`
    }
  }
  const pools = new Map(before.pools.map((pool) => [`${pool.host} ${pool.key}`, pool]))
  for (const pool of now.pools) {
    const was = pools.get(`${pool.host} ${pool.key}`)
    if (was === undefined) continue
    if (pool.version < was.version || pool.epoch < was.epoch) yield `a pool of ${pool.host} went back`
    if (pool.version === was.version && (pool.target !== was.target || pool.epoch !== was.epoch))
      yield `a pool of ${pool.host} changed and its version stayed ${pool.version}`
  }
}
