/**
 * Who is fenced, as a pure function: a host whose lease an observer saw unchanged for lease + grace.
 *
 * A host renews by raising `seq`, and knows its own deadline from the moment of sending. So an observer that has read the same (epoch, seq) for lease +
 * grace, on its own monotonic clock and counted from the answer of the first read (guards: fence.clock, fence.read, fence.grace), knows that the host has
 * passed its deadline, and no clock of another machine is asked. Between the last look and the fence the host may still have renewed: the statement that
 * fences names the (epoch, seq) that were seen (guard: fence.cas).
 *
 * Counting begins anew where an observer has not looked for long: it was started, it was paused, or the database was away. Whatever kept it from looking
 * may have kept hosts from renewing, so what it finds unchanged proves nothing about them (guard: fence.gap).
 */

/** A lease that a boot of its host holds, as it was read. */
export type LeaseSeen = { readonly hostId: string; readonly epoch: number; readonly seq: number }

type Sighting = LeaseSeen & {
  /** Answer of the first read that showed it, on the observer's monotonic clock. */
  readonly sinceMs: number
  /** It was renewed behind this moment: the question of the last read that showed another seq. Undefined: there was none. */
  readonly renewedAfterMs: number | undefined
}

export type FenceMemory = {
  /** Answer of the last read. */
  readonly lookedAtMs: number
  /** By host. */
  readonly sightings: ReadonlyMap<string, Sighting>
  /** Question of the last read. */
  readonly askedAtMs: number
}

export type Look = {
  readonly leases: readonly LeaseSeen[]
  /** Both on the observer's monotonic clock. */
  readonly askedAtMs: number
  readonly answeredAtMs: number
}

export type FenceBounds = {
  /** Lease and grace together. */
  readonly waitMs: number
  /** Between two answers; what is longer is no watching. */
  readonly gapMs: number
}

export type FencePlan = {
  readonly fence: readonly LeaseSeen[]
  /** For the next look. */
  readonly memory: FenceMemory
  /** Counting begins with this look. */
  readonly anew: boolean
  /** Until a lease has been seen for long enough, if it stays as it is; undefined: there is none that is not due. */
  readonly nextInMs: number | undefined
}

/** @param memory of this observer's last look; undefined: it has not looked */
export function planFences(memory: FenceMemory | undefined, look: Look, bounds: FenceBounds): FencePlan {
  const { answeredAtMs, askedAtMs } = look
  const watched = memory !== undefined && answeredAtMs - memory.lookedAtMs <= bounds.gapMs ? memory : undefined
  const sightings = new Map(look.leases.map((lease) => [lease.hostId, sighting({ memory, watched: watched !== undefined, lease, answeredAtMs })]))
  const leftMs = (seen: Sighting): number => bounds.waitMs - (answeredAtMs - seen.sinceMs)
  const all = [...sightings.values()]
  const waiting = all.map(leftMs).filter((ms) => ms > 0)
  return {
    fence: all.filter((seen) => leftMs(seen) <= 0).map(({ hostId, epoch, seq }) => ({ hostId, epoch, seq })),
    memory: { lookedAtMs: answeredAtMs, askedAtMs, sightings },
    anew: watched === undefined,
    nextInMs: waiting.length === 0 ? undefined : Math.min(...waiting),
  }
}

type Seeing = { readonly memory: FenceMemory | undefined; readonly watched: boolean; readonly lease: LeaseSeen; readonly answeredAtMs: number }

function sighting({ memory, watched, lease, answeredAtMs }: Seeing): Sighting {
  const known = memory?.sightings.get(lease.hostId)
  if (known?.epoch !== lease.epoch || known.seq !== lease.seq) return { ...lease, sinceMs: answeredAtMs, renewedAfterMs: memory?.askedAtMs }
  // When it was renewed stays true across a gap; for how long it was watched does not.
  return watched ? known : { ...known, sinceMs: answeredAtMs }
}

/** Makes the next look count anew. */
export const notWatching = (memory: FenceMemory): FenceMemory => ({ ...memory, lookedAtMs: Number.NEGATIVE_INFINITY })

/**
 * The moment behind which the lease was renewed, on the observer's clock; undefined: nothing that was seen says so.
 * @param lease as it was read behind the look of `memory`
 */
export function renewedBehindMs(memory: FenceMemory, lease: LeaseSeen): number | undefined {
  const seen = memory.sightings.get(lease.hostId)
  const isNewer = seen === undefined || lease.epoch > seen.epoch || (lease.epoch === seen.epoch && lease.seq > seen.seq)
  return isNewer ? memory.askedAtMs : seen.renewedAfterMs
}

/** For how long the lease that has been so for longest was seen unchanged, milliseconds. */
export const longestUnchangedMs = ({ lookedAtMs, sightings }: FenceMemory): number =>
  Math.max(0, ...[...sightings.values()].map((seen) => lookedAtMs - seen.sinceMs))
