/** Files of a sandbox over bare HTTP, as `curl` would: paths are percent-encoded bytes. */
import { FileInfoSchema, FileListSchema, FileWrittenSchema, parserOf } from '@sandglass/contract'
import { jsonBody, percentEncode, type RawAnswer, type RawRequest, rawHttp, succeeded } from './raw-http.ts'
import type { Files, Path } from './sandboxed.ts'

export type RawFiles = Pick<Files, 'write' | 'read' | 'stat' | 'list' | 'remove' | 'move'>
export type Access = { readonly baseUrl: string; readonly key: string; readonly sandboxId: string }

const written = parserOf(FileWrittenSchema)
const info = parserOf(FileInfoSchema)
const list = parserOf(FileListSchema)

const base64 = (path: Path): string => (typeof path === 'string' ? Buffer.from(path, 'utf8') : Buffer.from(path)).toString('base64')

export function rawFiles({ baseUrl, key, sandboxId }: Access): RawFiles {
  const call = async (request: RawRequest): Promise<RawAnswer> => {
    const headers = { authorization: `Bearer ${key}`, ...request.headers }
    return succeeded(await rawHttp(baseUrl, { ...request, path: `/v1/sandboxes/${sandboxId}/files${request.path}`, headers }))
  }
  const query = (path: Path): string => `path=${percentEncode(path)}`
  return {
    async write(path, content) {
      const headers = { 'content-type': 'application/octet-stream' }
      return written.parse(jsonBody(await call({ method: 'PUT', path: `?${query(path)}`, headers, body: content })))
    },
    read: async (path) => (await call({ method: 'GET', path: `?${query(path)}` })).body,
    stat: async (path) => info.parse(jsonBody(await call({ method: 'GET', path: `/stat?${query(path)}` }))),
    async list(path) {
      const { items } = list.parse(jsonBody(await call({ method: 'GET', path: `/list?${query(path)}` })))
      return items.map((item) => ({
        name: item.name_b64 === undefined ? Buffer.from(item.name, 'utf8') : Buffer.from(item.name_b64, 'base64'),
        type: item.type,
        size: item.size,
      }))
    },
    async remove(path, options = {}) {
      await call({ method: 'DELETE', path: `?${query(path)}${options.recursive === true ? '&recursive=1' : ''}` })
    },
    async move(from, to) {
      const headers = { 'content-type': 'application/json' }
      await call({ method: 'POST', path: '/move', headers, body: JSON.stringify({ from_b64: base64(from), to_b64: base64(to) }) })
    },
  }
}
