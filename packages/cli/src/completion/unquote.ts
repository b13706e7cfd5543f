/** The word that a shell would make of what was typed so far, near enough: quotes and backslashes away. Pure. */
export function unquote(typed: string): string {
  let word = ''
  let quote = ''
  for (let index = 0; index < typed.length; index += 1) {
    const character = typed.charAt(index)
    if (quote === '' && (character === "'" || character === '"')) quote = character
    else if (character === quote) quote = ''
    else if (character === '\\' && quote !== "'") {
      index += 1
      word += typed.charAt(index)
    } else word += character
  }
  return word
}
