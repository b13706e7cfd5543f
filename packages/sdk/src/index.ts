/**
 * `@sandglass/sdk`: isolated machines from code.
 *
 * ```ts
 * await using sandbox = await Sandbox.create()
 * const { stdout } = await sandbox.exec(['python3', '-c', 'print(6*7)'])
 * ```
 */
import './node-version.ts'

export type { ApiKey, CreatedApiKey } from '@sandglass/contract/api-key'
export type { ErrorCode, FieldError } from '@sandglass/contract/errors'
export type { ArchiveExtracted, FileWritten } from '@sandglass/contract/file'
export type { Drain, Host, HostStatus } from '@sandglass/contract/host'
export type { Operation as OperationResource } from '@sandglass/contract/operation'
export type { Process as ProcessResource } from '@sandglass/contract/process'
export type { Role } from '@sandglass/contract/role'
export type { Sandbox as SandboxResource, SandboxStatus } from '@sandglass/contract/sandbox'
export type { Template } from '@sandglass/contract/template'
export type { ApiKeys, CreateApiKeyOptions } from './api-keys.ts'
export { Sandglass, type SandglassOptions } from './client.ts'
export type { Argv, CommandOptions, Program } from './command.ts'
export { SandglassError, type SandglassErrorContext } from './error.ts'
export type { ChangeGap, EventsOptions, SandboxChange } from './events.ts'
export type { Exec, ExecOptions } from './exec.ts'
export type { ExecResult } from './exec-result.ts'
export type { FileInfo } from './file-info.ts'
export type { SandboxPath } from './file-path.ts'
export type { FileSource, ReadableHandle } from './file-source.ts'
export type { FileEvent, WatchOptions } from './file-watch.ts'
export type { FileContent, FileOptions, Files, ReadOptions, WriteOptions } from './files.ts'
export type { DrainHostOptions, Hosts, ListHostsOptions } from './hosts.ts'
export type { Operation } from './operation.ts'
export type { Operations } from './operations.ts'
export type { Gap } from './output-queue.ts'
export type { OutputStream, OutputStreamOptions } from './output-stream.ts'
export type { ListOptions } from './pages.ts'
export type { ProcessExit, RemoteProcess } from './process.ts'
export type { InputSource, ProcessInput } from './process-input.ts'
export type { OutputOptions } from './process-output.ts'
export type { Connection } from './profile.ts'
export { type CreateSandboxOptions, type DeleteOptions, type GetOrCreateOptions, type ListSandboxesOptions, Sandbox } from './sandbox.ts'
export type { SignalName, SignalOptions } from './signal-process.ts'
export type { AttachOptions, Spawned, SpawnOptions, StreamOptions } from './spawn.ts'
export type { Templates } from './templates.ts'
export type { Terminal, TerminalOptions } from './terminal.ts'
export type { CallOptions } from './transport.ts'
export type { SandboxUsage } from './usage.ts'
export type { Socket, SocketHandlers, SocketRequest, World } from './world.ts'
