/** What a PromQL expression asks for: series by name, and labels. Not a parser: promtool says what is PromQL; this finds the names in what is. */

export type Selector = {
  /** As in the text: of a histogram with its suffix. */
  readonly name: string
  readonly labels: readonly string[]
  /** Those that a label must be equal to. */
  readonly equal: Readonly<Record<string, string>>
}

export type Asked = {
  readonly selectors: readonly Selector[]
  /** Named by `by`, `without`, `on` and their like. */
  readonly grouped: readonly string[]
  /** It has an aggregation, so the series that come out have only the labels of `by`. */
  readonly aggregates: boolean
}

const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'unless', 'bool', 'offset', 'by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g
const AGGREGATION = /\b(?:sum|min|max|avg|count|group|topk|bottomk|quantile|stddev|stdvar|count_values)\b(?=\s*(?:by|without|\())/
const SELECTOR = /(?<![\w.:])([a-zA-Z_:][\w:]*)\s*(\{(?:[^}"]|"(?:[^"\\]|\\.)*")*\})?(?!\s*\()(?![\w:])/g
const MATCHER = /([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g

export function askedBy(expression: string): Asked {
  const grouped = [...expression.matchAll(GROUPING)].flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
  const text = expression.replaceAll(GROUPING, ' ').replaceAll(/\[[^\]]*\]/g, ' ')
  const selectors = [...text.matchAll(SELECTOR)].flatMap(([, name = '', braces = '']): Selector[] => {
    if (WORDS.has(name)) return []
    const matchers = [...braces.matchAll(MATCHER)]
    return [
      {
        name,
        labels: matchers.map(([, label = '']) => label),
        equal: Object.fromEntries(matchers.flatMap(([, label = '', operator, value = '']) => (operator === '=' ? [[label, value]] : []))),
      },
    ]
  })
  return { selectors, grouped: grouped.filter((name) => name !== ''), aggregates: AGGREGATION.test(expression) }
}
