/** Mounts of this machine as mountinfo tells. */
import { readFileSync } from 'node:fs'

export type Mount = { readonly point: string; readonly type: string; readonly source: string; readonly options: string }

const withoutEscapes = (text: string): string => text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

export function listMounts(): Mount[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [left = '', right = ''] = line.split(' - ')
      const [type = '', source = '', options = ''] = right.split(' ')
      return { point: withoutEscapes(left.split(' ')[4] ?? ''), type, source, options }
    })
}

/** Mount points at or below a directory, deepest first, so that they can be unmounted in order. */
export function mountsBelow(directory: string): string[] {
  return listMounts()
    .map((mount) => mount.point)
    .filter((point) => point === directory || point.startsWith(`${directory}/`))
    .sort((left, right) => right.length - left.length)
}
