/** What a path is. */
import type { FileInfo as WireFileInfo } from '@sandglass/contract/file'
import { bytesOfBase64, bytesOfText } from './encoding.ts'

export type FileInfo = {
  /** Last component as text; bytes that are not UTF-8 are replaced. */
  readonly name: string
  /** Last component, exact. */
  readonly nameBytes: Uint8Array
  readonly path: string
  readonly type: WireFileInfo['type']
  /** Bytes. */
  readonly size: number
  /** Permission bits, for example `0o644`. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Names, when the sandbox's `/etc/passwd` and `/etc/group` have them. */
  readonly user: string | undefined
  readonly group: string | undefined
  readonly mtime: Date
  /** For `ifMatch`; only of regular files. */
  readonly etag: string | undefined
  /** Where a symbolic link points, as text. */
  readonly target: string | undefined
}

export function fileInfoOf(wire: WireFileInfo): FileInfo {
  return {
    name: wire.name,
    nameBytes: wire.name_b64 === undefined ? bytesOfText(wire.name) : bytesOfBase64(wire.name_b64),
    path: wire.path,
    type: wire.type,
    size: wire.size,
    mode: Number.parseInt(wire.mode, 8),
    uid: wire.uid,
    gid: wire.gid,
    user: wire.user,
    group: wire.group,
    mtime: new Date(wire.mtime_ms),
    etag: wire.etag,
    target: wire.target,
  }
}
