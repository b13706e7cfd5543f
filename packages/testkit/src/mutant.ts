/**
 * A package's sources with one guard switched off: a copy with some texts replaced, to be imported beside the real one. A test of a guard runs its scenario
 * against both; against the mutant it has to fail, or it tests nothing.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** `file`: below the sources. */
export type Mutation = { readonly file: string; readonly replace: string; readonly by: string }

/** `source`: folder of the mutant's sources. */
export type Mutant = { readonly source: string; [Symbol.dispose](): void }

const modules = join(import.meta.dirname, '../../../node_modules')

/**
 * @param source folder of the real ones
 * @throws Error when the text to replace is not there: the guard has moved, and its mutation has to follow
 */
export function mutantOf(source: string, mutations: readonly Mutation[]): Mutant {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-mutant-'))
  cpSync(source, join(folder, 'src'), { recursive: true })
  symlinkSync(modules, join(folder, 'node_modules'))
  for (const { file, replace, by } of mutations) {
    const path = join(folder, 'src', file)
    const text = readFileSync(path, 'utf8')
    if (!text.includes(replace)) throw new Error(`${file} does not hold ${JSON.stringify(replace)}`)
    writeFileSync(path, text.replaceAll(replace, by))
  }
  return { source: join(folder, 'src'), [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
