/** Tables: columns as wide as their content, two spaces between, no lines drawn, nothing cut off. */
import { plain } from './text.ts'

export type Column<T> = {
  readonly title: string
  readonly value: (row: T) => string
  readonly align?: 'right'
}

/** Terminal cells of a text, near enough: wide characters of East Asia and emoji take two. */
function width(text: string): number {
  let cells = 0
  for (const character of text)
    cells += /\p{Mark}/u.test(character)
      ? 0
      : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(character)
        ? 2
        : 1
  return cells
}

const pad = (text: string, cells: number, right: boolean): string => (right ? ' '.repeat(cells - width(text)) + text : text + ' '.repeat(cells - width(text)))

export function renderTable<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const cells = [columns.map((column) => column.title), ...rows.map((row) => columns.map((column) => plain(column.value(row))))]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => width(line[index] ?? ''))))
  return cells
    .map(
      (line) =>
        `${line
          .map((text, index) => pad(text, widths[index] ?? 0, columns[index]?.align === 'right'))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

/** Names and values, one a line. */
export function renderFields(fields: readonly (readonly [name: string, value: string])[], indent = ''): string {
  const longest = Math.max(0, ...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => `${indent}${name.padEnd(longest)}  ${plain(value)}`.trimEnd().concat('\n')).join('')
}
