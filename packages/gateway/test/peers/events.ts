/** Reads server-sent events of an answer. */
export type ReadEvent = { readonly type: string; readonly data: Record<string, unknown> }

export async function* readEvents(response: Response): AsyncGenerator<ReadEvent> {
  if (response.body === null) throw new Error('no body')
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const match = /^event: (\w+)\ndata: (.*)$/.exec(part)
      if (match === null) throw new Error(`not an event: ${part}`)
      yield { type: match[1] ?? '', data: JSON.parse(match[2] ?? '') }
    }
  }
  if (rest !== '') throw new Error(`the stream ended inside an event: ${rest}`)
}
