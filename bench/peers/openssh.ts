/**
 * OpenSSH on loopback as a peer of terminals: a server of its own on a free port with keys of its own.
 *
 * The server runs in a mount namespace of its own, where the user and the directory that it insists on exist; the machine gets neither.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { runCommand } from '@sandglass/host-agent/processes/run-command'
import { freePort } from '@sandglass/testkit'
import { until } from '../../tests/e2e/bounds.ts'
import { debianProgram } from './debian.ts'

const START_MS = 10_000
const NOBODY = 65_534

const IN_ITS_NAMESPACE = `mount --bind "$1/passwd" /etc/passwd && mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$2" -D -e -f "$1/sshd_config"`

export type SshShell = ChildProcessByStdio<Writable, Readable, null>

export class OpenSsh implements AsyncDisposable {
  readonly #server: ChildProcess
  readonly #folder: string
  readonly #port: number

  private constructor(server: ChildProcess, folder: string, port: number) {
    this.#server = server
    this.#folder = folder
    this.#port = port
  }

  /** @throws Error when there is no server to be had, or it does not come up */
  static async start({ scratch, cache }: { readonly scratch: string; readonly cache: string }): Promise<OpenSsh> {
    const sshd = await debianProgram({ program: 'sshd', packages: ['openssh-server', 'libwrap0'], cache })
    const folder = join(scratch, 'openssh')
    mkdirSync(folder, { mode: 0o700 })
    const port = await freePort()
    for (const name of ['host', 'client']) await runCommand('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)])
    writeFileSync(join(folder, 'sshd_config'), serverConfiguration(folder, port))
    writeFileSync(join(folder, 'passwd'), `${readFileSync('/etc/passwd', 'utf8')}sshd:x:${NOBODY}:${NOBODY}::/run/sshd:/usr/sbin/nologin\n`)
    writeFileSync(join(folder, 'known_hosts'), `[127.0.0.1]:${port} ${readFileSync(join(folder, 'host.pub'), 'utf8')}`)
    const server = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', IN_ITS_NAMESPACE, 'sh', folder, sshd.path], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...sshd.env },
    })
    let said = ''
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2_000)
    })
    const ssh = new OpenSsh(server, folder, port)
    try {
      await until(START_MS, 'sshd listening', () => (server.exitCode === null ? listens(port) : Promise.reject(new Error('it ended'))))
    } catch (cause) {
      await ssh[Symbol.asyncDispose]()
      throw new Error(`sshd did not come up: ${said.trim()}`, { cause })
    }
    return ssh
  }

  /** A terminal with that command line in it. */
  shell(command: string): SshShell {
    const options = ['BatchMode=yes', 'IdentitiesOnly=yes', `UserKnownHostsFile=${join(this.#folder, 'known_hosts')}`, 'LogLevel=ERROR']
    return spawn(
      'ssh',
      ['-F', 'none', '-tt', '-p', String(this.#port), '-i', join(this.#folder, 'client'), ...options.map((option) => `-o${option}`), 'root@127.0.0.1', command],
      {
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.exitCode !== null || this.#server.signalCode !== null) return
    this.#server.kill('SIGTERM')
    await once(this.#server, 'exit')
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function serverConfiguration(folder: string, port: number): string {
  return `Port ${port}
ListenAddress 127.0.0.1
HostKey ${join(folder, 'host')}
AuthorizedKeysFile ${join(folder, 'client.pub')}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
PrintMotd no
PrintLastLog no
`
}
