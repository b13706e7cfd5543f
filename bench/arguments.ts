/** What the command line asks for. Pure. */
import { parseArgs } from 'node:util'

export type Wishes = {
  /** Ids of rows; undefined: all. */
  readonly only: ReadonlySet<string> | undefined
  readonly json: string | undefined
  /** At most so many samples of everything: a look at whether it works, not a measurement. */
  readonly samples: number
}

export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const OPTIONS = { only: { type: 'string' }, json: { type: 'string' }, samples: { type: 'string' } } as const

function parsed(argv: readonly string[]): { readonly only?: string | undefined; readonly json?: string | undefined; readonly samples?: string | undefined } {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** @param known ids of all rows @throws UsageError naming what there is */
export function parseWishes(argv: readonly string[], known: readonly string[]): Wishes {
  const values = parsed(argv)
  const asked = values.only?.split(',').map((id) => id.trim().toUpperCase())
  const strange = asked?.filter((id) => !known.includes(id)) ?? []
  if (strange.length > 0) throw new UsageError(`there is no row ${strange.join(', ')}; there are ${known.join(', ')}`)
  if (values.samples !== undefined && !/^[1-9][0-9]{0,5}$/.test(values.samples)) throw new UsageError('--samples takes a number from 1 on')
  return {
    only: asked === undefined ? undefined : new Set(asked),
    json: values.json,
    samples: values.samples === undefined ? Number.POSITIVE_INFINITY : Number(values.samples),
  }
}
