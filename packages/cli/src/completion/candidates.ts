/** Asks for what a completion wants. Somebody waits at a prompt, so there is little time, and whatever fails is no candidate. */
import { Sandbox, type Sandglass } from '@sandglass/sdk'
import { connect } from '../connection.ts'
import { readConfig } from '../profiles/config-file.ts'
import type { Completion, Wanted } from './plan.ts'

const TIMEOUT_MS = 2_000
/** More than anybody reads. */
const MOST = 1_000
const CONTROL = /[\u0000-\u001f\u007f]/

type Environment = Readonly<Record<string, string | undefined>>

/** Candidates that begin with the prefix, each once. */
export async function candidatesOf(completion: Completion, environment: Environment): Promise<string[]> {
  const lists = await Promise.all(completion.wanted.map((wanted) => ask(wanted, completion, environment)))
  const found = lists.flat().filter((word) => word.startsWith(completion.prefix) && !CONTROL.test(word))
  return [...new Set(found)].slice(0, MOST).map((word) => completion.lead + word)
}

async function ask(wanted: Wanted, { server }: Completion, environment: Environment): Promise<string[]> {
  if (wanted.type === 'words') return [...wanted.words]
  if (wanted.type === 'files') return []
  try {
    if (wanted.type === 'profiles') return Object.keys(readConfig(environment).profiles)
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    return await fromServer(wanted, connect(server), signal)
  } catch {
    return []
  }
}

type OfServer = Exclude<Wanted, { readonly type: 'words' | 'files' | 'profiles' }>

async function fromServer(wanted: OfServer, client: Sandglass, signal: AbortSignal): Promise<string[]> {
  switch (wanted.type) {
    case 'sandboxes':
      return sandboxes(client, signal)
    case 'places':
      return (await sandboxes(client, signal)).map((name) => `${name}:`)
    case 'templates':
      return collected(client.templates.list({ signal }), ({ name }) => name)
    case 'keys':
      return collected(client.apiKeys.list({ signal }), ({ id, revoked_at: revoked }) => (revoked === null ? id : undefined))
    case 'hosts':
      return namesAndIds(client.hosts.list({ signal }))
    case 'join-tokens':
      return collected(client.joinTokens.list({ signal }), ({ id, status }) => (status === 'open' ? id : undefined))
    case 'processes':
      return (await (await Sandbox.get(wanted.sandbox, { client, signal })).processes({ signal })).map(({ id }) => id)
    case 'remote':
      return remote(client, wanted.sandbox, wanted.typed, signal)
  }
}

async function collected<T>(items: AsyncIterable<T>, wordOf: (item: T) => string | undefined): Promise<string[]> {
  const words: string[] = []
  for await (const item of items) words.push(...[wordOf(item)].filter((word) => word !== undefined))
  return words
}

/** A name where there is one: ids are for machines. Ids are offered to those who type one. */
async function namesAndIds(items: AsyncIterable<{ readonly id: string; readonly name: string | null }>): Promise<string[]> {
  const found: string[] = []
  for await (const { id, name } of items) found.push(...(name === null ? [id] : [name, id]))
  return found
}

const sandboxes = (client: Sandglass, signal: AbortSignal): Promise<string[]> => namesAndIds(Sandbox.list({ client, signal }))

/** Entries of the directory that was typed so far; directories end with `/`, so that one can go on. */
async function remote(client: Sandglass, idOrName: string, typed: string, signal: AbortSignal): Promise<string[]> {
  const sandbox = await Sandbox.get(idOrName, { client, signal })
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  const found: string[] = []
  for await (const { name, type } of sandbox.files.list(directory.startsWith('/') ? directory : `/${directory}`, { signal })) {
    found.push(`${idOrName}:${directory === '' ? '/' : directory}${name}${type === 'directory' ? '/' : ''}`)
    if (found.length >= MOST) break
  }
  return found
}
