/** Streams as every browser has them: without `ReadableStream.from`, and without `for await` over a stream. */

/** Pulled as it is read; a reader that cancels ends the source. */
export function streamOf(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next()
        if (next.done === true) controller.close()
        else controller.enqueue(next.value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

/** A loop that is left early cancels the stream. */
export async function* chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void, undefined> {
  if (stream === null) return
  const reader = stream.getReader()
  let isDone = false
  try {
    for (;;) {
      const next = await reader.read()
      isDone = next.done
      if (next.done) return
      yield next.value
    }
  } catch (error) {
    isDone = true
    throw error
  } finally {
    if (!isDone) await reader.cancel().catch(() => undefined)
    reader.releaseLock()
  }
}
