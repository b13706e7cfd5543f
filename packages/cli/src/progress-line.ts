/** One line that tells how far long work is. Only on a terminal: elsewhere nothing is printed, so logs and pipes stay as they are. */
import type { Io } from './io.ts'
import { bytesText, durationText } from './text.ts'

const PERIOD_MS = 100
const BAR_CELLS = 24
const CLEAR = '\r\u001b[K'

/** Pure. @param totalBytes undefined when nobody knows */
export function progressText(title: string, bytes: number, totalBytes: number | undefined, elapsedMs: number, cols: number): string {
  const perSecond = elapsedMs < PERIOD_MS ? undefined : (bytes * 1000) / elapsedMs
  const speed = perSecond === undefined ? '' : `  ${bytesText(perSecond)}/s`
  if (totalBytes === undefined || totalBytes === 0) return `${title}  ${bytesText(bytes)}${speed}`.slice(0, cols - 1)
  const share = Math.min(1, bytes / totalBytes)
  const filled = Math.floor(share * BAR_CELLS)
  const left = perSecond === undefined || perSecond === 0 || share === 1 ? '' : `  ${durationText(((totalBytes - bytes) * 1000) / perSecond)} left`
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR_CELLS - filled)}]`
  const tail = `  ${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${bytesText(Math.min(bytes, totalBytes))} of ${bytesText(totalBytes)}${speed}${left}`
  return `${title.slice(0, Math.max(8, cols - 1 - tail.length))}${tail}`.slice(0, cols - 1)
}

export class ProgressLine implements AsyncDisposable {
  readonly #io: Io
  readonly #title: string
  readonly #totalBytes: number | undefined
  readonly #startedMs: number
  #drawnMs = Number.NEGATIVE_INFINITY
  #hasDrawn = false

  constructor(io: Io, title: string, totalBytes: number | undefined) {
    this.#io = io
    this.#title = title
    this.#totalBytes = totalBytes
    this.#startedMs = io.now()
  }

  /** @param bytes all so far */
  readonly update = (bytes: number): void => {
    const nowMs = this.#io.now()
    if (!this.#io.errorIsTerminal || nowMs - this.#drawnMs < PERIOD_MS) return
    this.#drawnMs = nowMs
    this.#hasDrawn = true
    const text = progressText(this.#title, bytes, this.#totalBytes, nowMs - this.#startedMs, this.#io.size().cols)
    // Whoever reads the bar cannot hold the work back.
    this.#io.stderr.write(`${CLEAR}${text}`).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasDrawn) await this.#io.stderr.write(CLEAR).catch(() => undefined)
  }
}
