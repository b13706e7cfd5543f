/** The control plane with one guard switched off. */
import { join } from 'node:path'
import { type Mutant, type Mutation, mutantOf } from '@sandglass/testkit'

export type { Mutation }

export const makeMutant = (mutations: readonly Mutation[]): Mutant => mutantOf(join(import.meta.dirname, '../src'), mutations)
