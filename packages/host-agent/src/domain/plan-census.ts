/**
 * Desired against found, both ways. Pure.
 *
 * Found is read first and desired after it: every start records its intent before it makes anything, so whatever was found and is still
 * desired is in the second list, and the difference is a leftover.
 */
import { parseRuntimeName, type RuntimeName } from './runtime-name.ts'

/** Kinds of things that a runtime leaves on a machine. */
export const TRACE_KINDS = ['process', 'cgroup', 'netns', 'mount', 'directory', 'runtime_state'] as const
export type TraceKind = (typeof TRACE_KINDS)[number]

/** Names of runtimes by kind of trace. Names that are not of a runtime are left alone. */
export type Traces = Readonly<Record<TraceKind, ReadonlySet<string>>>

export type CensusPlan = {
  /** On the machine, but not desired. */
  readonly leftovers: readonly { readonly name: RuntimeName; readonly kinds: readonly TraceKind[] }[]
  /** Desired to run, but without a process. */
  readonly missing: readonly RuntimeName[]
}

/**
 * @param desired every runtime that a record names, whatever its phase
 * @param running those whose process must exist
 */
export function planCensus(found: Traces, desired: ReadonlySet<RuntimeName>, running: ReadonlySet<RuntimeName>): CensusPlan {
  const leftovers = new Map<RuntimeName, TraceKind[]>()
  for (const kind of TRACE_KINDS) {
    for (const text of found[kind]) {
      const name = parseRuntimeName(text)?.name
      if (name === undefined || desired.has(name)) continue
      leftovers.set(name, [...(leftovers.get(name) ?? []), kind])
    }
  }
  return {
    leftovers: [...leftovers].map(([name, kinds]) => ({ name, kinds })),
    missing: [...running].filter((name) => !found.process.has(name)),
  }
}
