/** Files in a sandbox. Names are bytes; `*_b64` stands beside a name that is not UTF-8. */
import Type, { type Static } from 'typebox'
import { PATTERNS } from './forms.ts'
import { LIMITS } from './limits.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const FileInfoSchema = closed(
  {
    name: Type.String(),
    name_b64: Type.Optional(Type.String()),
    path: Type.String(),
    type: oneOf(['file', 'directory', 'symlink', 'fifo', 'socket', 'block', 'char']),
    size: Type.Integer({ minimum: 0 }),
    mode: Type.String({ pattern: '^[0-7]{4}$' }),
    uid: Type.Integer(),
    gid: Type.Integer(),
    user: Type.Optional(Type.String()),
    group: Type.Optional(Type.String()),
    mtime_ms: Type.Integer(),
    etag: Type.Optional(Type.String()),
    target: Type.Optional(Type.String()),
    target_b64: Type.Optional(Type.String()),
  },
  { $id: 'FileInfo' },
)
export type FileInfo = Static<typeof FileInfoSchema>

export const FileListSchema = closed({ items: Type.Array(FileInfoSchema), next_cursor: nullable(Type.String()) }, { $id: 'FileList' })
export type FileList = Static<typeof FileListSchema>

const path = Type.Optional(Type.String({ maxLength: LIMITS.pathBytes }))
const pathB64 = Type.Optional(Type.String({ maxLength: 2 * LIMITS.pathBytes }))
const user = Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.userCharacters }))
const mode = Type.Optional(Type.String({ pattern: PATTERNS.mode }))

export const MakeDirectorySchema = closed({ path, path_b64: pathB64, mode, parents: Type.Optional(Type.Boolean()), user }, { $id: 'MakeDirectory' })
export const MoveFileSchema = closed(
  { from: path, from_b64: pathB64, to: path, to_b64: pathB64, overwrite: Type.Optional(Type.Boolean()), user },
  { $id: 'MoveFile' },
)
export const CopyFileSchema = closed(
  { from: path, from_b64: pathB64, to: path, to_b64: pathB64, overwrite: Type.Optional(Type.Boolean()), user },
  { $id: 'CopyFile' },
)
export const ChangeModeSchema = closed(
  {
    path,
    path_b64: pathB64,
    mode,
    uid: Type.Optional(Type.Integer({ minimum: 0 })),
    gid: Type.Optional(Type.Integer({ minimum: 0 })),
    recursive: Type.Optional(Type.Boolean()),
    user,
  },
  { $id: 'ChangeMode' },
)

export const FileWrittenSchema = closed({ size: Type.Integer({ minimum: 0 }), etag: Type.String() }, { $id: 'FileWritten' })
export type FileWritten = Static<typeof FileWrittenSchema>

export const ArchiveExtractedSchema = closed({ entries: Type.Integer({ minimum: 0 }), bytes: Type.Integer({ minimum: 0 }) }, { $id: 'ArchiveExtracted' })
export type ArchiveExtracted = Static<typeof ArchiveExtractedSchema>

export const FileEventSchema = closed(
  {
    type: oneOf(['ready', 'created', 'modified', 'deleted', 'moved', 'overflow', 'heartbeat']),
    path: Type.Optional(Type.String()),
    path_b64: Type.Optional(Type.String()),
    to: Type.Optional(Type.String()),
    to_b64: Type.Optional(Type.String()),
    at_ms: Type.Optional(Type.Integer()),
  },
  { $id: 'FileEvent' },
)
export type FileEvent = Static<typeof FileEventSchema>
