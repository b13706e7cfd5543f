/** Printing objects and lists in the three formats. JSON is the API's own objects, never mixed with text for people. */
import type { Format } from './arguments.ts'
import type { Io } from './io.ts'
import { type Column, renderTable } from './table.ts'

export async function printList<T>(io: Io, format: Format, list: Iterable<T> | AsyncIterable<T>, columns: readonly Column<T>[]): Promise<void> {
  const items: T[] = []
  for await (const item of list) items.push(item)
  if (format === 'json') await io.stdout.write(`${JSON.stringify(items)}\n`)
  else if (format === 'lines') for (const item of items) await io.stdout.write(`${JSON.stringify(item)}\n`)
  else await io.stdout.write(renderTable(columns, items))
}

export async function printObject<T>(io: Io, format: Format, item: T, human: (item: T) => string): Promise<void> {
  const text = format === 'human' ? human(item) : `${JSON.stringify(item)}\n`
  if (text !== '') await io.stdout.write(text)
}
