/**
 * The same tests outside any sandbox: in the same root file system, with the same Python, on this machine's own kernel.
 *
 * The template is mounted in a mount namespace of its own, so nothing is left when the command ends, however it ends.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parserOf, TemplateManifestSchema } from '@sandglass/contract'

const TEMPLATES = join(process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass', 'templates')
const TIMEOUT_MS = 300_000
const manifests = parserOf(TemplateManifestSchema)

const SCRIPT = `set -eu
image=$1 root=$2 directory=$3
shift 3
mount -t erofs -o ro,loop "$image" "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
tar -xz -C "$root/tmp" -f -
exec chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root LANG=C.UTF-8 /bin/sh -c 'cd "$0" && exec "$@"' "/tmp/$directory" "$@"
`

/** Unpacks an archive and runs a command in its directory. @returns both streams, as they came */
export async function runOutside(archive: Uint8Array, directory: string, argv: readonly string[]): Promise<{ code: number | null; output: string }> {
  const image = join(TEMPLATES, manifests.parse(JSON.parse(readFileSync(join(TEMPLATES, 'base.json'), 'utf8'))).file)
  const root = mkdtempSync(join(tmpdir(), 'sandglass-outside-'))
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', SCRIPT, 'sh', image, root, directory, ...argv], {
        stdio: 'pipe',
        timeout: TIMEOUT_MS,
        killSignal: 'SIGKILL',
      })
      let output = ''
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8')
      })
      child.stderr.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8')
      })
      child.stdin.on('error', () => undefined)
      child.stdin.end(archive)
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, output }))
    })
  } finally {
    rmSync(root, { recursive: true })
  }
}
