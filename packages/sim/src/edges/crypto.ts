/** Chance of the seed in the place of the machine's. */
import { presentActor } from '../kernel/actor.ts'

export * from 'node:crypto'

export const randomBytes = (size: number): Uint8Array => presentActor().world.random.bytes(size)
