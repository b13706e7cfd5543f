/** Which files below a directory hold a text. What is mounted there is not looked at: templates and namespaces hold nothing of any sandbox. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mountsBelow } from '../../src/storage/mount-table.ts'

export function filesHolding(text: string, directory: string, mounted = new Set(mountsBelow(directory))): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (mounted.has(path)) return []
    if (entry.isDirectory()) return filesHolding(text, path, mounted)
    return entry.isFile() && readFileSync(path).includes(text) ? [path] : []
  })
}
