/** The text that a role answers at /metrics, as series. */
export type Series = { readonly name: string; readonly labels: Readonly<Record<string, string>> }

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** @throws Error for a line that is none of the format */
export function seriesOf(text: string): Series[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name, braces = ''] = LINE.exec(line) ?? []
    if (name === undefined) throw new Error(`no sample: ${line}`)
    return { name, labels: Object.fromEntries([...braces.matchAll(LABEL)].map(([, label = '', value = '']) => [label, value])) }
  })
}
