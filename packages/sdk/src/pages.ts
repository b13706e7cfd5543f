/** Lists, page by page. */
import type { Parser } from '@sandglass/contract/schema'
import type { CallOptions, Transport } from './transport.ts'

export type ListOptions = CallOptions & {
  /** Items asked for at once, at most 200. */
  readonly pageSize?: number | undefined
}

type Page<T> = { readonly items: readonly T[]; readonly next_cursor: string | null }

/** Reads all pages as one sequence; the next page is asked for when the last item of this one was taken. */
export async function* listPages<T>(
  transport: Transport,
  url: string,
  filters: Readonly<Record<string, string | undefined>>,
  parser: Parser<Page<T>>,
  options: ListOptions,
): AsyncGenerator<T, void, undefined> {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value)
  if (options.pageSize !== undefined) query.set('limit', String(options.pageSize))
  for (;;) {
    const suffix = query.size === 0 ? '' : `?${query}`
    const page = await transport.json({ method: 'GET', url: `${url}${suffix}`, repeatable: true, signal: options.signal, timeoutMs: options.timeoutMs }, parser)
    yield* page.items
    if (page.next_cursor === null) return
    query.set('cursor', page.next_cursor)
  }
}
