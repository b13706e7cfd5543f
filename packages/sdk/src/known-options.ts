/**
 * Options that a call does not know are refused. TypeScript sees a misspelt one; plain JavaScript does not, and an option that is silently left out is
 * found much later, as a sandbox that lives an hour instead of a minute.
 */
import { SandglassError } from './error.ts'

/** Every option of a type, by name; the compiler holds the two together. */
export type Known<Options> = Readonly<Record<keyof Options & string, true>>

/** @throws SandglassError `invalid_request` naming the option and those that there are */
export function onlyKnown<Options extends object>(call: string, options: Options, known: Known<Options>): void {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name))
      throw new SandglassError('invalid_request', `${call} has no option \`${name}\`; it has ${Object.keys(known).sort().join(', ')}.`)
  }
}
