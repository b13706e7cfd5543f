/** Positions of pools on this host's disk: one file each, of one epoch. */
import { join } from 'node:path'
import { closed, nullable, POOL_KEY_PATTERN, PoolPositionSchema, PoolSpecSchema, parserOf } from '@sandglass/contract'
import Type from 'typebox'
import type { StoredPool } from '../domain/stored-pool.ts'
import { listWhole, removeDurably } from './atomic-file.ts'
import { readJson, writeJson } from './json-file.ts'

const parser = parserOf(closed({ format: Type.Literal(1), epoch: Type.Integer({ minimum: 0 }), position: PoolPositionSchema, spec: nullable(PoolSpecSchema) }))
const KEY = new RegExp(POOL_KEY_PATTERN)

export type PoolRecords = {
  /** Durable when it resolves. */
  write(epoch: number, pool: StoredPool): Promise<void>
  /** Those of the epoch. @throws Error when one cannot be read: a host that forgot a version must not guess one */
  load(epoch: number): Promise<StoredPool[]>
  forgetAll(): Promise<void>
}

export function poolRecords(directory: string): PoolRecords {
  const path = (key: string): string => join(directory, `${key}.json`)
  const keys = async (): Promise<string[]> => (await listWhole(directory)).map((name) => name.replace(/\.json$/, '')).filter((key) => KEY.test(key))
  return {
    write: (epoch, { spec, ...position }) => writeJson(path(position.key), { format: 1, epoch, position, spec }),
    async load(epoch) {
      const stored: StoredPool[] = []
      for (const key of await keys()) {
        const found = await readJson(path(key), parser)
        if (found?.epoch === epoch && found.position.key === key) stored.push({ ...found.position, spec: found.spec })
      }
      return stored
    },
    async forgetAll() {
      for (const key of await keys()) await removeDurably(path(key))
    },
  }
}
