/** Looks for a seed that finds a deliberate defect. */

import type { Focus } from '../faults/mix.ts'
import { type Replacement, registerDefect, replaced, sourceOf } from '../loading/hooks.ts'
import { loadSimulation } from '../loading/thread.ts'
import type { Engine } from '../store/engine.ts'

export type Defect = {
  readonly name: string
  readonly says: string
  /** In the sources, `file` being a path below `packages/`; of an SQL file as well. */
  readonly off?: readonly Replacement[]
  /** In the database, once its schema is there. */
  readonly sql?: string
  /** What the runs that look for it are made of. */
  readonly focus?: Focus
}

export type Search = { readonly defect: Defect; readonly seeds: number }

export type Finding = {
  readonly name: string
  /** Undefined: not one of the seeds found it. One that violates without the defect as well finds nothing. */
  readonly seed: number | undefined
  readonly violation: string | undefined
  readonly history: readonly string[]
  /** Of this machine. */
  readonly tookMs: number
}

const SQL_FILES = 'control-plane/src/store/sql/'
/** The number of no defect, see `loadSimulation`. */
const WITHOUT = 0

export async function searchDefect(engine: Engine, { defect, seeds }: Search): Promise<Finding> {
  const began = performance.now()
  const { off = [], sql, focus } = defect
  const ofSources = off.filter(({ file }) => !file.startsWith(SQL_FILES))
  const ofStatements = off.filter(({ file }) => file.startsWith(SQL_FILES))
  const { runSeed } = await loadSimulation(registerDefect(ofSources))
  const whole = await loadSimulation(WITHOUT)
  const replacedText = statementReplacer(ofStatements)
  if (sql !== undefined) alter(engine, sql)
  try {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const result = await runSeed(seed, { engine, replaced: replacedText, ...(focus === undefined ? {} : { focus }) })
      if (result.violation === undefined) continue
      // What the same run does without the defect is no sign of it.
      const without = await whole.runSeed(seed, { engine, ...(focus === undefined ? {} : { focus }) })
      if (without.violation !== undefined) continue
      return { name: defect.name, seed, violation: result.violation, history: result.history, tookMs: performance.now() - began }
    }
    return { name: defect.name, seed: undefined, violation: undefined, history: [], tookMs: performance.now() - began }
  } finally {
    if (sql !== undefined) await engine.migrate()
  }
}

function alter(engine: Engine, text: string): void {
  const { error } = engine.run({ text })
  if (error !== undefined) throw error
}

/** Statements are told apart by their whole text. */
function statementReplacer(replacements: readonly Replacement[]): (text: string) => string {
  const files = new Set(replacements.map(({ file }) => file))
  const texts = new Map(
    [...files].map((file) => [
      sourceOf(file),
      replaced(
        file,
        sourceOf(file),
        replacements.filter((one) => one.file === file),
      ),
    ]),
  )
  return (text) => texts.get(text) ?? text
}
