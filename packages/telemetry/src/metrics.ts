/**
 * Counters, histograms and gauges in the Prometheus text format (https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 * A role declares every metric it has in one catalogue, so a name that is not there does not compile, and what `deploy/` asks for can be
 * compared with it. Labels never come from a client's input: the number of series is bounded by the code. Own code, because it is these few
 * lines, and the client library in use everywhere has had no release for two years.
 */
type Labels = Readonly<Record<string, string>>
export type Sample<L extends Labels = Labels> = { readonly labels?: L; readonly value: number }

/** `help` is one sentence. Base units: seconds, bytes; a counter's name ends in `_total`. `labels`: every series has all of them. */
export type Declared = { readonly type: 'counter' | 'gauge' | 'histogram'; readonly help: string; readonly labels?: readonly string[] }
export type Catalogue = Readonly<Record<string, Declared>>
type NamesOf<C extends Catalogue, T extends Declared['type']> = { [Name in keyof C]: C[Name]['type'] extends T ? Name : never }[keyof C] & string
type LabelsOf<D extends Declared> = Readonly<Record<D extends { readonly labels: readonly (infer L extends string)[] } ? L : never, string>>

/** From a millisecond to two minutes. */
const SECONDS_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

type Histogram = { readonly buckets: number[]; sum: number; count: number }

export class Metrics<C extends Catalogue> {
  readonly #catalogue: C
  readonly #counters = new Map<string, Map<string, number>>()
  readonly #histograms = new Map<string, Map<string, Histogram>>()
  readonly #sources = new Map<string, () => readonly Sample[]>()

  constructor(catalogue: C) {
    this.#catalogue = catalogue
  }

  count<Name extends NamesOf<C, 'counter'>>(name: Name, labels?: LabelsOf<C[Name]>, by = 1): void {
    const series = seriesOf(this.#counters, name)
    const key = labelText(labels ?? {})
    series.set(key, (series.get(key) ?? 0) + by)
  }

  observeSeconds<Name extends NamesOf<C, 'histogram'>>(name: Name, labels: LabelsOf<C[Name]>, seconds: number): void {
    const series = seriesOf(this.#histograms, name)
    const key = labelText(labels)
    const histogram = series.get(key) ?? { buckets: SECONDS_BOUNDS.map(() => 0), sum: 0, count: 0 }
    series.set(key, histogram)
    histogram.sum += seconds
    histogram.count += 1
    const bucket = SECONDS_BOUNDS.findIndex((bound) => seconds <= bound)
    if (bucket >= 0) histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  }

  /** Read at every scrape: a gauge, or what something else counts. A later source of the same name takes the place of the earlier one. */
  from<Name extends NamesOf<C, 'gauge' | 'counter'>>(name: Name, read: () => number | readonly Sample<LabelsOf<C[Name]>>[]): void {
    this.#sources.set(name, () => {
      const value = read()
      return typeof value === 'number' ? [{ value }] : value
    })
  }

  /** A counter without labels is there from the start, as 0: else its first step would not be seen as one. */
  text(): string {
    const lines = Object.entries(this.#catalogue).flatMap(([name, { type, help, labels }]) => {
      const found = this.#samples(name)
      const samples = found.length === 0 && type === 'counter' && labels === undefined ? [`${name} 0`] : found
      return samples.length === 0 ? [] : [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples]
    })
    return `${lines.join('\n')}\n`
  }

  #samples(name: string): string[] {
    const source = this.#sources.get(name)
    if (source !== undefined) return source().map(({ labels = {}, value }) => `${name}${braced(labelText(labels))} ${value}`)
    const counters = this.#counters.get(name)
    if (counters !== undefined) return [...counters].map(([labels, value]) => `${name}${braced(labels)} ${value}`)
    return [...(this.#histograms.get(name) ?? [])].flatMap(([labels, histogram]) => histogramLines(name, labels, histogram))
  }
}

function seriesOf<T>(all: Map<string, Map<string, T>>, name: string): Map<string, T> {
  const series = all.get(name) ?? new Map<string, T>()
  all.set(name, series)
  return series
}

function histogramLines(name: string, labels: string, { buckets, sum, count }: Histogram): string[] {
  const comma = labels === '' ? '' : `${labels},`
  let below = 0
  const lines = SECONDS_BOUNDS.map((bound, index) => {
    below += buckets[index] ?? 0
    return `${name}_bucket{${comma}le="${bound}"} ${below}`
  })
  return [...lines, `${name}_bucket{${comma}le="+Inf"} ${count}`, `${name}_sum${braced(labels)} ${sum}`, `${name}_count${braced(labels)} ${count}`]
}

const braced = (labels: string): string => (labels === '' ? '' : `{${labels}}`)

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }
const labelText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replaceAll(/[\\"\n]/g, (character) => ESCAPES[character] ?? character)}"`)
    .join(',')
