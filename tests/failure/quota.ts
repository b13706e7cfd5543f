/** What the tenants of an installation are charged with, read from its database and not from its API, which does not tell. */
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { closed, parserOf } from '@sandglass/contract/schema'
import Type from 'typebox'
import { NoAnswer } from './api.ts'
import type { Quota } from './judge.ts'
import { livingRole } from './roles.ts'

const parser = parserOf(closed({ sandboxes: Type.Integer(), vcpu: Type.Number(), memory_mb: Type.Integer(), disk_gb: Type.Integer() }))
const TIMEOUT_MS = 15_000

/** Where the control plane finds the database, and as whom. */
export type Books = { readonly url: string; readonly uid: number; readonly gid: number }

export function booksOf(home: string): Books {
  const living = livingRole(home, 'control-plane')
  if (living === undefined) throw new Error('the control plane does not live')
  const url = /(?:^|\0)SANDGLASS_DATABASE_URL=([^\0]*)/.exec(readFileSync(`/proc/${living.pid}/environ`, 'utf8'))?.[1]
  if (url === undefined) throw new Error('the control plane was not told of a database')
  const { uid, gid } = statSync(`/proc/${living.pid}`)
  return { url, uid, gid }
}

/** @throws NoAnswer while the database does not answer */
export function readQuota({ url, uid, gid }: Books): Promise<Quota> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [join(import.meta.dirname, 'quota-query.ts'), url], { uid, gid, timeout: TIMEOUT_MS, env: {} }, (error, stdout, stderr) => {
      if (error === null) resolve(parser.parse(JSON.parse(stdout)))
      else reject(new NoAnswer(`the database did not answer: ${stderr.slice(-300)}`, { cause: error }))
    })
  })
}
