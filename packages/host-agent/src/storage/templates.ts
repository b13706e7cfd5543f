/**
 * Templates: one read-only EROFS file per digest, mounted once and shared by all sandboxes of the installation.
 *
 * A manifest beside the file names the digest. The file is hashed once before its first use here; afterwards its size and modification time
 * vouch for it. A template whose bytes are not its digest is not offered.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readdir, rmdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { closed, parserOf, type TemplateManifest, TemplateManifestSchema } from '@sandglass/contract'
import Type from 'typebox'
import { type Log, reasonOf } from '../log.ts'
import { runCommand } from '../processes/run-command.ts'
import { readJson, writeJson } from '../state/json-file.ts'
import { listMounts, mountsBelow } from './mount-table.ts'

const manifestParser = parserOf(TemplateManifestSchema)
const stampParser = parserOf(closed({ digest: Type.String(), size: Type.Number(), mtime_ms: Type.Number() }))
const DIGEST_CHARACTERS = 12

export type Template = Pick<TemplateManifest, 'name' | 'digest'>

export type Templates = {
  list(): readonly Template[]
  /** Path of the mounted root of a template. @throws Error when the host does not have it */
  mounted(digest: string): Promise<string>
  /** Reads the manifests again. */
  refresh(): Promise<void>
  unmountAll(): Promise<void>
}

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash)
  return `sha256:${hash.digest('hex')}`
}

function shortDigest(digest: string): string {
  return digest.replace(/^sha256:/, '').slice(0, DIGEST_CHARACTERS)
}

export function templates(sourceDir: string, mountDir: string, log: Log): Templates {
  const known = new Map<string, { manifest: TemplateManifest; file: string }>()
  const mounting = new Map<string, Promise<string>>()

  async function verify(file: string, digest: string): Promise<boolean> {
    const { size, mtimeMs } = await stat(file)
    const stampPath = join(mountDir, `${shortDigest(digest)}.json`)
    const stamp = await readJson(stampPath, stampParser).catch(() => undefined)
    if (stamp?.digest === digest && stamp.size === size && stamp.mtime_ms === mtimeMs) return true
    if ((await sha256OfFile(file)) !== digest) return false
    await writeJson(stampPath, { digest, size, mtime_ms: mtimeMs })
    return true
  }

  async function mount(digest: string): Promise<string> {
    const entry = known.get(digest)
    if (entry === undefined) throw new Error(`no template with digest ${digest}`)
    const point = join(mountDir, shortDigest(digest))
    if (listMounts().some((found) => found.point === point)) return point
    await mkdir(point, { recursive: true })
    await runCommand('mount', ['-t', 'erofs', '-o', 'ro,nosuid,nodev,loop', entry.file, point])
    return point
  }

  return {
    list: () => [...known.values()].map(({ manifest }) => ({ name: manifest.name, digest: manifest.digest })),
    mounted(digest) {
      const pending = mounting.get(digest) ?? mount(digest).finally(() => mounting.delete(digest))
      mounting.set(digest, pending)
      return pending
    },
    async refresh() {
      if (!existsSync(sourceDir)) return
      await mkdir(mountDir, { recursive: true })
      for (const name of (await readdir(sourceDir)).filter((entry) => entry.endsWith('.json'))) {
        try {
          const manifest = await readJson(join(sourceDir, name), manifestParser)
          if (manifest === undefined || known.has(manifest.digest)) continue
          const file = join(sourceDir, basename(manifest.file))
          if (await verify(file, manifest.digest)) known.set(manifest.digest, { manifest, file })
          else log.error('template.digest_wrong', { template: manifest.name, digest: manifest.digest })
        } catch (error) {
          log.error('template.unreadable', { manifest: name, reason: reasonOf(error) })
        }
      }
    },
    async unmountAll() {
      for (const point of mountsBelow(mountDir)) {
        await runCommand('umount', ['-l', point])
        await rmdir(point).catch(() => {})
      }
    },
  }
}
