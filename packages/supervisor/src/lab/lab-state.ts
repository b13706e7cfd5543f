/** `lab.json`: the shape of the lab that is up, or was being made when its command was killed. It is written before anything else and removed last. */
import { readFileSync } from 'node:fs'
import { closed, parserOf } from '@sandglass/contract/schema'
import Type, { type Static } from 'typebox'
import { writeFileAtomic } from '../atomic-file.ts'
import { labPaths } from './paths.ts'
import { LabPlanSchema } from './plan.ts'

const LabStateSchema = closed({
  plan: LabPlanSchema,
  /** Settings of the operator, of when the lab was made: whatever is started later gets the same. */
  environment: Type.Record(Type.String(), Type.String()),
})
export type LabState = Static<typeof LabStateSchema>

const parser = parserOf(LabStateSchema)

export const writeLabState = (state: LabState): void => writeFileAtomic(labPaths.plan(state.plan.home), `${JSON.stringify(state)}\n`, 0o600)

/** Undefined when there is none, or one that this version cannot read. */
export function readLabState(home: string): LabState | undefined {
  try {
    return parser.parse(JSON.parse(readFileSync(labPaths.plan(home), 'utf8')))
  } catch {
    return undefined
  }
}
