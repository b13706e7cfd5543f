/** Cuts what a warden sends into lines. */

const LONGEST = 256

export type LineSplitter = {
  /** Undefined when a line is longer than any. */
  push(chunk: Buffer): string[] | undefined
}

export function lineSplitter(): LineSplitter {
  let rest = ''
  return {
    push(chunk) {
      const lines = `${rest}${chunk.toString('latin1')}`.split('\n')
      rest = lines.pop() ?? ''
      return rest.length > LONGEST ? undefined : lines
    },
  }
}
