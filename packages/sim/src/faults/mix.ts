/** What goes wrong in one run, and how often: decided by its seed, so that some runs are calm but for one thing and others are all of it at once. */
import { Random } from '../kernel/random.ts'

/** What happens again and again, at random moments; the mean time in between, milliseconds. 0: never. */
export const KINDS = [
  'partition',
  'agentCrash',
  'agentPause',
  'reboot',
  'replicaCrash',
  'replicaPause',
  'databaseOutage',
  'slowDisk',
  'fullDisk',
  'runtimeExit',
  'oldOrder',
  'wallStep',
] as const
export type Kind = (typeof KINDS)[number]

/** From and to, milliseconds: one of the spans is drawn, and a time in it. */
type Spans = readonly (readonly [number, number])[]

export type Mix = {
  readonly durationMs: number
  readonly hosts: number
  readonly replicas: number
  readonly sandboxes: number
  /** Members that pools keep on each host; 0: no pools. */
  readonly poolFloor: number
  /** Sandboxes that fit on each host. */
  readonly room: readonly number[]
  readonly quota: number
  /** How far apart the changes of one sandbox are, milliseconds. */
  readonly paceMs: number
  readonly everyMs: Readonly<Record<Kind, number>>
  /** For how long what is undone lasts. */
  readonly lastsMs: { readonly partition: Spans; readonly agentPause: Spans }
  readonly network: { readonly lost: number; readonly answerLost: number; readonly doubled: number; readonly slow: number; readonly slowMs: number }
  readonly store: { readonly lostBefore: number; readonly lostAfter: number; readonly slowMs: number }
  readonly notifications: { readonly lost: number; readonly doubled: number; readonly lateMs: number }
  /** Of each named point of the code that is reached. */
  readonly points: { readonly agentDies: number; readonly replicaDies: number; readonly replicaStalls: number }
  readonly launches: { readonly failing: number; readonly silent: number }
  /** Operators cordon and drain, a mean time apart; 0: never. */
  readonly operatorEveryMs: number
  readonly shortLives: boolean
  readonly restarts: boolean
}

export type Focus = { readonly [key in keyof Mix]?: Mix[key] extends number | boolean | readonly number[] ? Mix[key] : Partial<Mix[key]> }

/** @param focus what is not left to chance */
export function mixOf(seed: number, focus: Focus = {}): Mix {
  const random = new Random(seed, 3)
  const some = (probability: number, from: number, to: number): number => (random.chance(probability) ? random.between(from, to) : 0)
  const hosts = random.integer(1, 3)
  const poolFloor = random.chance(0.6) ? random.integer(1, 2) : 0
  const everyMs = Object.fromEntries(KINDS.map((kind) => [kind, some(SHARE[kind] ?? 0.3, 3_000, 30_000)])) as Record<Kind, number>
  const drawn: Mix = {
    durationMs: random.between(20_000, 60_000),
    hosts,
    replicas: random.integer(1, 2),
    sandboxes: random.integer(2, 6),
    poolFloor,
    room: Array.from({ length: 3 }, () => random.integer(2, 4) + poolFloor),
    quota: random.integer(3, 8),
    paceMs: random.pick([300, 2_000, 6_000]),
    everyMs,
    lastsMs: LASTS_MS,
    network: {
      lost: some(0.5, 0, 0.1),
      answerLost: some(0.5, 0, 0.1),
      doubled: some(0.5, 0, 0.3),
      slow: some(0.5, 0, 0.3),
      slowMs: random.pick([50, 500, 15_000]),
    },
    store: { lostBefore: some(0.4, 0, 0.02), lostAfter: some(0.4, 0, 0.03), slowMs: random.pick([0.5, 0.5, 5, 100]) },
    notifications: { lost: some(0.5, 0, 1), doubled: some(0.4, 0, 1), lateMs: random.pick([2, 2, 200, 10_000]) },
    points: { agentDies: some(0.4, 0, 0.08), replicaDies: some(0.3, 0, 0.03), replicaStalls: some(0.3, 0, 0.1) },
    launches: { failing: some(0.3, 0, 0.4), silent: some(0.2, 0, 0.2) },
    operatorEveryMs: some(0.3, 4_000, 15_000),
    shortLives: random.chance(0.3),
    restarts: random.chance(0.5),
  }
  return {
    ...drawn,
    ...focus,
    everyMs: { ...drawn.everyMs, ...focus.everyMs },
    lastsMs: { ...drawn.lastsMs, ...focus.lastsMs },
    network: { ...drawn.network, ...focus.network },
    store: { ...drawn.store, ...focus.store },
    notifications: { ...drawn.notifications, ...focus.notifications },
    points: { ...drawn.points, ...focus.points },
    launches: { ...drawn.launches, ...focus.launches },
  }
}

/** Some are too short for anybody to fence the host, some are not. */
const LASTS_MS: Mix['lastsMs'] = {
  partition: [5_000, 30_000, 70_000].map((to) => [500, to] as const),
  agentPause: [4_000, 20_000, 60_000].map((to) => [500, to] as const),
}

/** Kinds that are more likely or less than others to be part of a run. */
const SHARE: Partial<Record<Kind, number>> = { oldOrder: 0.5, agentCrash: 0.4, databaseOutage: 0.2, fullDisk: 0.15 }
