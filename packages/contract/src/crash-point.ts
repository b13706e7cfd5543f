/** How `SANDGLASS_CRASH_AT` is read: a failure test names a point of a role, and the role dies there. */

/**
 * @param text `<point>`, or `<point>:<n>` for the n-th time that it is reached
 * @returns to be called at every point
 * @throws RangeError when the text names none of the points
 */
export function dieAt<Point extends string>(text: string, points: readonly Point[], die: () => void): (reached: Point) => void {
  const [name, count = '1'] = text.split(':')
  const point = points.find((known) => known === name)
  if (point === undefined) throw new RangeError(`SANDGLASS_CRASH_AT: no such point: ${name}. Points: ${points.join(', ')}`)
  let left = Number(count)
  if (!Number.isInteger(left) || left < 1) throw new RangeError(`SANDGLASS_CRASH_AT: the count must be at least 1: ${text}`)
  return (reached) => {
    if (reached !== point) return
    left -= 1
    if (left === 0) die()
  }
}
