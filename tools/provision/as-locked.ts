// Says by its exit code whether node_modules already holds what package-lock.json asks for: as-locked.ts ROOT
//
// npm leaves its own record of what it installed in node_modules/.package-lock.json. Packages that the record lacks are
// fine only where the lock calls them optional: those are meant for other platforms.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

type Entry = { version: string | undefined; integrity: string | undefined; optional: boolean; link: boolean }

function textField(value: object, name: string): string | undefined {
  const field: unknown = Reflect.get(value, name)
  return typeof field === 'string' ? field : undefined
}

function readEntries(file: string): Map<string, Entry> {
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const entries = new Map<string, Entry>()
  if (typeof parsed !== 'object' || parsed === null || !('packages' in parsed)) return entries
  const packages: unknown = parsed.packages
  if (typeof packages !== 'object' || packages === null) return entries
  for (const [path, value] of Object.entries(packages)) {
    if (!path.startsWith('node_modules/') || typeof value !== 'object' || value === null) continue
    entries.set(path, {
      version: textField(value, 'version'),
      integrity: textField(value, 'integrity'),
      optional: Reflect.get(value, 'optional') === true,
      link: Reflect.get(value, 'link') === true,
    })
  }
  return entries
}

function isAsLocked(root: string): boolean {
  const locked = readEntries(join(root, 'package-lock.json'))
  const installed = readEntries(join(root, 'node_modules', '.package-lock.json'))
  for (const [path, entry] of locked) {
    const there = installed.get(path)
    if (there === undefined) {
      if (!entry.optional) return false
    } else if (there.version !== entry.version || there.integrity !== entry.integrity || there.link !== entry.link) {
      return false
    }
  }
  return [...installed.keys()].every((path) => locked.has(path))
}

try {
  process.exitCode = isAsLocked(process.argv[2] ?? '.') ? 0 : 1
} catch {
  process.exitCode = 1
}
