/** How many bytes a copy into a sandbox will send, near enough for a bar: the archive of a file or tree. */
import { lstat, opendir, stat } from 'node:fs/promises'

const HEADER_BYTES = 512
const SLASH = Buffer.from('/')

const entryBytes = (size: number): number => HEADER_BYTES + Math.ceil(size / HEADER_BYTES) * HEADER_BYTES

export async function uploadBytes(path: Buffer): Promise<number> {
  const info = await stat(path)
  return info.isDirectory() ? HEADER_BYTES + (await contentBytes(path)) : entryBytes(info.size)
}

async function contentBytes(directory: Buffer): Promise<number> {
  let bytes = 0
  for await (const found of await opendir(directory, { encoding: 'buffer' as BufferEncoding })) {
    const path = Buffer.concat([directory, SLASH, Buffer.from(found.name)])
    const info = await lstat(path)
    bytes += entryBytes(info.isFile() ? info.size : 0) + (info.isDirectory() ? await contentBytes(path) : 0)
  }
  return bytes
}
