/** `cp`: files and trees in and out. */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type FileInfo, Sandbox, type Sandglass, SandglassError } from '@sandglass/sdk'
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { type CopySide, type Kind, parseCopySide, planCopy } from '../copy-path.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { ProgressLine } from '../progress-line.ts'
import { exactArguments } from '../raw-arguments.ts'
import { uploadBytes } from '../transfer-size.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, user: { type: 'string' } } as const

export const command: Command = {
  usage: 'cp SRC DST [--user USER]',
  help: `Copies a file or a tree; one of SRC and DST is ID:path, the other a local path, or - for standard input or output (one file).

Modes, times and links are kept, owners are not. As docker cp: an existing directory DST gets SRC inside it, SRC/. copies only its
content; DST is made when it is missing, but not the directories above it; a DST that ends with / must be a directory when SRC is a file.
On a terminal a line tells how far it is. A file appears at once, complete. Write ./a:b for a local name with a colon.

  --user USER   whose rights count inside the sandbox; default root`,
  run,
}

type Options = { readonly user: string | undefined; readonly signal: AbortSignal }
type Remote = { readonly sandbox: Sandbox; readonly path: Buffer }

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const texts = [operand(operands, 0, 'SRC'), operand(operands, 1, 'DST')]
  noMoreThan(operands, 2)
  const [source, target] = bytesOf(io, argv, texts).map(parseCopySide)
  if (source === undefined || target === undefined) throw new UsageError('SRC and DST are missing')
  using interrupt = new Interrupt(io)
  try {
    await copy(io, connect(values), source, target, { user: values.user, signal: interrupt.signal })
    if (target.type !== 'stream') await printObject(io, formatOf(values), { source: texts[0], target: texts[1] }, () => '')
    return 0
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}

/** The operands as bytes, where text cannot hold them. */
function bytesOf(io: Io, argv: readonly string[], texts: readonly string[]): Buffer[] {
  const exact = exactArguments(argv, argv.some((argument) => argument.includes('\uFFFD')) ? io.lastArguments(argv.length) : [])
  let from = 0
  return texts.map((text) => {
    const index = argv.indexOf(text, from)
    from = index + 1
    const found = exact[index] ?? text
    return typeof found === 'string' ? Buffer.from(found) : Buffer.from(found)
  })
}

async function copy(io: Io, client: Sandglass, source: CopySide, target: CopySide, options: Options): Promise<void> {
  if (source.type === 'remote' && target.type === 'remote')
    throw new UsageError('only one side may be in a sandbox; copy through this machine, or use exec ID -- cp')
  if (source.type === 'remote') return out(io, await remoteOf(client, source), target, options)
  if (target.type === 'remote') return into(io, source, await remoteOf(client, target), options)
  throw new UsageError('one side must be in a sandbox: ID:path')
}

async function remoteOf(client: Sandglass, side: { sandbox: string; path: Buffer }): Promise<Remote> {
  return { sandbox: await Sandbox.get(side.sandbox, { client }), path: side.path }
}

async function into(io: Io, source: CopySide, { sandbox, path }: Remote, options: Options): Promise<void> {
  if (source.type !== 'local') {
    await using progress = new ProgressLine(io, path.toString(), undefined)
    await sandbox.files.write(path, io.stdin, { ...options, onProgress: progress.update })
    return
  }
  const kind = await localKind(source.path)
  const to = planCopy({ path: source.path, kind }, { path, kind: kindOf(await remoteInfo(sandbox, path, options)) })
  await requireDirectory(to, async (parent) => kindOf(await remoteInfo(sandbox, parent, options)))
  await using progress = new ProgressLine(io, source.path.toString(), io.errorIsTerminal ? await uploadBytes(source.path) : undefined)
  await sandbox.files.upload(source.path, to, { ...options, onProgress: progress.update })
}

async function out(io: Io, { sandbox, path }: Remote, target: CopySide, options: Options): Promise<void> {
  if (target.type !== 'local') {
    const { body } = await sandbox.files.open(path, options)
    for await (const bytes of body) await io.stdout.write(bytes)
    return
  }
  const info = await sandbox.files.stat(path, { ...options, follow: true })
  const to = planCopy({ path, kind: kindOf(info) }, { path: target.path, kind: await localKind(target.path) })
  await requireDirectory(to, localKind)
  await using progress = new ProgressLine(io, path.toString(), info.type === 'file' ? info.size : undefined)
  await sandbox.files.download(path, to, { ...options, onProgress: progress.update })
}

/** A misspelt directory must not come into being. */
async function requireDirectory(to: Buffer, kindAt: (path: Buffer) => Promise<Kind>): Promise<void> {
  const parent = Buffer.from(dirname(to.toString('latin1')), 'latin1')
  if ((await kindAt(parent)) !== 'directory') throw new Error(`the directory ${parent.toString()} does not exist`)
}

async function localKind(path: Buffer): Promise<Kind> {
  try {
    return (await stat(path)).isDirectory() ? 'directory' : 'file'
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'nothing'
    throw error
  }
}

function kindOf(info: FileInfo | undefined): Kind {
  return info === undefined ? 'nothing' : info.type === 'directory' ? 'directory' : 'file'
}

async function remoteInfo(sandbox: Sandbox, path: Buffer, options: Options): Promise<FileInfo | undefined> {
  try {
    return await sandbox.files.stat(path, { ...options, follow: true })
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'file_not_found') return undefined
    throw error
  }
}
