/** Asserts that an answer is the problem it should be: a code of the registry, its status, its media type, and a sentence. */
import assert from 'node:assert/strict'
import { ERRORS, type ErrorCode, PROBLEM_MEDIA_TYPE, type Problem, parseProblem } from '@sandglass/contract'
import { jsonBody, type RawAnswer } from '../subject/raw-http.ts'

export function assertProblem(what: string, answer: RawAnswer, codes: ErrorCode | readonly ErrorCode[]): Problem {
  const wanted: readonly ErrorCode[] = typeof codes === 'string' ? [codes] : codes
  const body = answer.body.toString('utf8')
  assert.match(
    answer.headers['content-type'] ?? '',
    new RegExp(`^${PROBLEM_MEDIA_TYPE.replace('+', '\\+')}`),
    `${what}: media type of a problem, status ${answer.status}, body ${body.slice(0, 300)}`,
  )
  const problem = parseProblem(jsonBody(answer))
  assert.ok(problem !== undefined, `${what}: the body is a problem: ${body.slice(0, 300)}`)
  assert.ok(wanted.includes(problem.code), `${what} gives ${problem.code} (${problem.detail}), not ${wanted.join(' or ')}`)
  assert.equal(answer.status, ERRORS[problem.code].status, `${what}: status of ${problem.code}`)
  assert.equal(problem.status, answer.status, `${what}: the body names the status`)
  assert.equal(problem.type, `/docs/errors#${problem.code}`, `${what}: type`)
  assert.ok(problem.detail.length > 10, `${what}: a sentence that says what was wrong`)
  assert.match(problem.request_id ?? '', /^rq[a-z2-7]{16}$/, `${what}: a request id`)
  assert.equal(/\bat .*\.ts:\d+|node_modules|SELECT |ECONN|\/work\//.test(body), false, `${what}: nothing of the inside is shown: ${body.slice(0, 300)}`)
  return problem
}
