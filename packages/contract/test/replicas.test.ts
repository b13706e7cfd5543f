import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { askReplicas, parseUrls, REPLICAS_MAX, Replicas } from '../src/replicas.ts'

const A = 'http://a:1'
const B = 'http://b:2'
const never = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const isAnswer = (error: unknown): boolean => error instanceof RangeError
const hurried = { patienceMs: 5, isAnswer }
const patient = { patienceMs: 60_000, isAnswer }

describe('a list of URLs', () => {
  test('is split at commas, loses slashes at ends and repetitions, and keeps its order', () => {
    assert.deepEqual(parseUrls('http://b:2/, http://a:1,http://b:2'), [B, A])
    assert.deepEqual(parseUrls('https://one.example/base/'), ['https://one.example/base'])
  })

  test('with something in it that is no base URL is none', () => {
    for (const text of ['', ' ', 'a', 'ftp://a', `${A},`, `${A},b`, 'http://user:secret@a', 'http://a?x=1', 'http://a#x'])
      assert.equal(parseUrls(text), undefined, text)
  })

  test('has a bound', () => {
    const urls = (count: number): string => Array.from({ length: count }, (_, index) => `http://h${index}`).join(',')
    assert.equal(parseUrls(urls(REPLICAS_MAX))?.length, REPLICAS_MAX)
    assert.equal(parseUrls(urls(REPLICAS_MAX + 1)), undefined)
  })
})

describe('asking replicas', () => {
  test('begins with the one that answered last', async () => {
    const replicas = new Replicas([A, B])
    const asked: string[] = []
    const ask = async (url: string): Promise<string> => {
      asked.push(url)
      if (url === A) throw new Error('refused')
      return url
    }
    assert.equal(await askReplicas(replicas, ask, patient), B)
    assert.equal(await askReplicas(replicas, ask, patient), B)
    assert.deepEqual(asked, [A, B, B])
  })

  test('asks the next one beside one that is silent, and lets that one go', async () => {
    const replicas = new Replicas([A, B])
    let letGo = false
    const ask = (url: string, signal: AbortSignal): Promise<string> => {
      if (url === B) return Promise.resolve(url)
      signal.addEventListener('abort', () => {
        letGo = true
      })
      return never(signal)
    }
    assert.equal(await askReplicas(replicas, ask, hurried), B)
    assert.equal(replicas.current, B)
    assert.ok(letGo)
  })

  test('takes a late answer of the first when the second fails', async () => {
    const answer = Promise.withResolvers<string>()
    const ask = (url: string): Promise<string> => {
      if (url === A) return answer.promise
      answer.resolve(A)
      return Promise.reject(new Error('refused'))
    }
    assert.equal(await askReplicas(new Replicas([A, B]), ask, hurried), A)
  })

  test('takes a refusal for an answer', async () => {
    const asked: string[] = []
    const ask = (url: string): Promise<string> => {
      asked.push(url)
      return Promise.reject(new RangeError('no'))
    }
    await assert.rejects(askReplicas(new Replicas([A, B]), ask, patient), RangeError)
    assert.deepEqual(asked, [A])
  })

  test('asks each once, and fails as the first failed', async () => {
    const asked: string[] = []
    const ask = (url: string): Promise<string> => {
      asked.push(url)
      return Promise.reject(new Error(`refused by ${url}`))
    }
    await assert.rejects(askReplicas(new Replicas([A, B], 1), ask, patient), /refused by http:\/\/b/)
    assert.deepEqual(asked, [B, A])
  })

  test('ends with its caller', async () => {
    const stop = new AbortController()
    const asked = askReplicas(new Replicas([A, B]), (_, signal) => never(signal), { ...patient, signal: stop.signal })
    stop.abort(new Error('stopped'))
    await assert.rejects(asked, /stopped/)
  })
})

test('who moves on is told to those that still hold on to the one before', () => {
  const replicas = new Replicas([A, B])
  const left: string[] = []
  const off = replicas.onMove((from) => left.push(from))
  replicas.failed(B)
  assert.deepEqual(left, [], 'B is not the one that is asked')
  replicas.failed(A)
  replicas.failed(A)
  assert.deepEqual(left, [A])
  off()
  replicas.failed(B)
  assert.deepEqual(left, [A])
})
