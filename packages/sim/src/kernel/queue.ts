/** Events by the time at which they are due: a binary heap. Equal times go by chance, given with the event. */
export type Due = { readonly atMs: number; readonly tie: number }

export class EventQueue<E extends Due> {
  readonly #heap: E[] = []

  get size(): number {
    return this.#heap.length
  }

  push(event: E): void {
    const heap = this.#heap
    let index = heap.push(event) - 1
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || !isBefore(event, parent)) break
      heap[index] = parent
      index = above
    }
    heap[index] = event
  }

  pop(): E | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      const child = isBeforeAt(heap, left + 1, left) ? left + 1 : left
      const next = heap[child]
      if (next === undefined || !isBefore(next, last)) break
      heap[index] = next
      index = child
    }
    heap[index] = last
    return first
  }
}

const isBefore = (left: Due, right: Due): boolean => left.atMs < right.atMs || (left.atMs === right.atMs && left.tie < right.tie)

function isBeforeAt(heap: readonly Due[], left: number, right: number): boolean {
  const [a, b] = [heap[left], heap[right]]
  return a !== undefined && b !== undefined && isBefore(a, b)
}
