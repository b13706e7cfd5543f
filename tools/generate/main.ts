/** `npm run generate`: writes every generated file. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { GENERATED } from './files.ts'

const root = join(import.meta.dirname, '../..')
for (const file of GENERATED) {
  mkdirSync(dirname(join(root, file.path)), { recursive: true })
  writeFileSync(join(root, file.path), file.make())
}
