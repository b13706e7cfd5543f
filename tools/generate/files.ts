/** The files that are made from other files. Each is checked in, so that a change of it is seen in review. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorsPage } from './errors-page.ts'
import { openapiDocument } from './openapi.ts'

type Generated = { readonly path: string; readonly make: () => string }

export const GENERATED: readonly Generated[] = [
  { path: 'openapi/openapi.json', make: openapiDocument },
  { path: 'docs/errors.md', make: errorsPage },
]

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** One line for each file that is not what its source makes. */
export function generatedFaults(root: string): string[] {
  return GENERATED.filter((file) => readText(join(root, file.path)) !== file.make()).map((file) => `${file.path} is not fresh: run npm run generate`)
}
