/**
 * Room for records on a disk that is full. A host that cannot write down what it ended cannot prove the end either, and what it holds would be held until
 * somebody makes room: so some room is kept from the start, and given up piece by piece to records that find none.
 */
import { closeSync, constants, open as openCallback, truncate, write } from 'node:fs'
import { rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const open = promisify(openCallback)
const writeSome = promisify(write)
const shorten = promisify(truncate)

const NAME = 'reserve'
const RESERVE_BYTES = 4 * 1024 * 1024
/** A record takes a block or two, and one for its directory now and then. */
const PIECE_BYTES = 64 * 1024
/** It is filled again only where more than this is free, so that it does not take back what it has just given. */
const FILL_ABOVE_BYTES = 16 * RESERVE_BYTES
/** Not zeros, which some file systems keep for nothing. */
const PIECE = Buffer.alloc(PIECE_BYTES, 0xa5)

const sizeOf = async (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

/** Brings it to its size, where there is plenty of room. @param root of the host's state */
export async function fillReserve(root: string): Promise<void> {
  const path = join(root, NAME)
  const { bavail, bsize } = await statfs(root)
  let size = await sizeOf(path)
  if (size >= RESERVE_BYTES || bavail * bsize < FILL_ABOVE_BYTES) return
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    while (size < RESERVE_BYTES) size += (await writeSome(file, PIECE, 0, PIECE_BYTES, size)).bytesWritten
  } finally {
    closeSync(file)
  }
}

/** Gives a piece to what is to be written there. @param path of a record @returns whether there was any left to give */
export async function giveWay(path: string): Promise<boolean> {
  // Records lie in the root of the state, or in a folder there.
  for (const root of [dirname(path), dirname(dirname(path))]) {
    const reserve = join(root, NAME)
    const size = await sizeOf(reserve)
    if (size === 0) continue
    await shorten(reserve, Math.max(0, size - PIECE_BYTES))
    return true
  }
  return false
}

export const removeReserve = (root: string): Promise<void> => rm(join(root, NAME), { force: true })

export const isDiskFull = (error: unknown): boolean => error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
