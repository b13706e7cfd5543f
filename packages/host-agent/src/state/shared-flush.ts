/**
 * One flush for many: whoever asks while a flush is under way shares the next one with all who come until that begins. A flush that had begun
 * before somebody asked is none of theirs, because what they wrote may have come too late for it.
 */
type Flush = { readonly running: Promise<void>; next: Promise<void> | undefined }

/** @param flush of the place that is named @returns resolves when what was written there before the call is flushed, and rejects as that flush did */
export function sharedFlush(flush: (place: string) => Promise<void>): (place: string) => Promise<void> {
  const places = new Map<string, Flush>()

  function begin(place: string): Promise<void> {
    const running = flush(place).finally(() => {
      if (places.get(place)?.next === undefined) places.delete(place)
    })
    places.set(place, { running, next: undefined })
    return running
  }

  return (place) => {
    const known = places.get(place)
    if (known === undefined) return begin(place)
    const begun = (): Promise<void> => begin(place)
    known.next ??= known.running.then(begun, begun)
    return known.next
  }
}
