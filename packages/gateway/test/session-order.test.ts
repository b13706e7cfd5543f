/** What was typed after a new size of the terminal arrives after it: the program that it starts sees the new size. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ClientFrame, CodedError, encodeClientFrame, LIMITS, type Process } from '@sandglass/contract'
import { Session } from '../src/session/session.ts'
import type { SessionAction } from '../src/session/session-events.ts'

const TERMINAL: Process = {
  id: 'praaaaaaaaaaaaaaaa',
  key: null,
  argv: ['/bin/sh'],
  cwd: '/',
  user: 'root',
  tty: true,
  state: 'running',
  pid: 2,
  exit_code: null,
  signal: null,
  timed_out: false,
  started_at_ms: 0,
  ended_at_ms: null,
  duration_ms: null,
  stdout: { start: 0, end: 0 },
  stderr: { start: 0, end: 0 },
  stdin: { accepted: 0, open: true },
  output_open: false,
  truncated: false,
  cpu_ms: 0,
  memory_bytes: 0,
  cols: 80,
  rows: 24,
}

class Typist {
  readonly #session = new Session({
    opening: {
      type: 'attach',
      process: TERMINAL.id,
      since: { stdout: 0, stderr: 0 },
      wantsStdin: true,
      takesOver: false,
      size: undefined,
      mustBeTerminal: true,
    },
    requestId: 'rqaaaaaaaaaaaaaaaa',
    newKey: () => 'k',
    sharesInput: () => false,
  })

  /** A terminal that has started. */
  static started(): Typist {
    const typist = new Typist()
    typist.sends({ channel: 'credit', bytes: 1_000 })
    typist.#said(typist.#session.on({ type: 'output', events: [{ type: 'started', process: TERMINAL }] }))
    return typist
  }

  sends(frame: ClientFrame): string[] {
    return this.#said(this.#session.on({ type: 'message', bytes: encodeClientFrame(frame), isBinary: true }))
  }

  resizes(cols: number): string[] {
    return this.sends({ channel: 'resize', size: { cols, rows: 24 } })
  }

  types(text: string): string[] {
    return this.sends({ channel: 'stdin', bytes: Buffer.from(text) })
  }

  sizeIsSet(error?: CodedError): string[] {
    return this.#said(this.#session.on({ type: 'controlDone', control: 'resize', ...(error === undefined ? {} : { error }) }))
  }

  inputIsTaken(): string[] {
    return this.#said(this.#session.on({ type: 'stdinAccepted' }))
  }

  inputFlows(): string[] {
    return this.#said(this.#session.on({ type: 'stdinFlows' }))
  }

  /** @returns what goes to the guest, and credit that goes to the client */
  inputIsReceipted(bytes: number): (string | number)[] {
    const actions = this.#session.on({ type: 'stdinReceipted', bytes })
    return [...this.#said(actions), ...this.#creditOf(actions)]
  }

  #creditOf(actions: readonly SessionAction[]): number[] {
    return actions.flatMap((action) => (action.do === 'send' && action.frame.channel === 'credit' ? [action.frame.bytes] : []))
  }

  /** @returns credit that goes to the client */
  inputBreaksOff(): number[] {
    const actions = this.#session.on({ type: 'stdinRefused', error: new CodedError('lost_contact') })
    return this.#creditOf(actions)
  }

  leaves(): string[] {
    return this.#said(this.#session.on({ type: 'clientGone' }))
  }

  get isInputSent(): boolean {
    return this.#session.isInputSent
  }

  get hasInput(): boolean {
    return this.#session.hasInput
  }

  /** What goes to the guest. */
  #said(actions: readonly SessionAction[]): string[] {
    return actions.flatMap((action) => {
      if (action.do === 'resize') return [`size ${action.size.cols}`]
      if (action.do !== 'stdin') return []
      const { bytes, close } = action.input.batch
      return [`input ${Buffer.from(bytes).toString()}${close ? '.' : ''}`]
    })
  }
}

test('input waits for the size that was sent before it, and for no other', () => {
  const typist = Typist.started()
  assert.deepEqual(typist.types('a'), ['input a'])
  assert.deepEqual(typist.resizes(100), ['size 100'])
  assert.deepEqual(typist.types('b'), [])
  assert.deepEqual(typist.inputIsTaken(), [])
  assert.deepEqual(typist.resizes(110), [])
  assert.deepEqual(typist.types('c'), [])
  // `b` came after 100 and before 110.
  assert.deepEqual(typist.sizeIsSet(), ['input b', 'size 110'])
  assert.deepEqual(typist.inputIsTaken(), [])
  assert.deepEqual(typist.sizeIsSet(), ['input c'])
  assert.deepEqual(typist.inputIsTaken(), [])
  assert.equal(typist.hasInput, false)
})

test('a storm of sizes holds input back for two of them at most', () => {
  const typist = Typist.started()
  typist.resizes(1)
  for (let cols = 2; cols <= 300; cols += 1) assert.deepEqual(typist.resizes(cols), [])
  typist.types('stty size\n')
  assert.deepEqual(typist.sizeIsSet(), ['size 300'])
  typist.resizes(301)
  assert.deepEqual(typist.sizeIsSet(), ['input stty size\n', 'size 301'])
})

test('a size that fails lets the input go on', () => {
  const typist = Typist.started()
  typist.resizes(100)
  typist.types('a')
  assert.deepEqual(typist.sizeIsSet(new CodedError('lost_contact')), ['input a'])
})

test('the end of input waits too, and what was sent before the client left is delivered in its order', () => {
  const typist = Typist.started()
  typist.resizes(100)
  typist.resizes(110)
  typist.types('a')
  assert.deepEqual(typist.sends({ channel: 'halfClose' }), [])
  assert.deepEqual(typist.leaves(), [])
  assert.equal(typist.hasInput, true)
  assert.deepEqual(typist.sizeIsSet(), ['size 110'])
  assert.deepEqual(typist.sizeIsSet(), ['input a.'])
  typist.inputIsTaken()
  assert.equal(typist.hasInput, false)
})

test('where input flows, it waits for sizes and for nothing else', () => {
  const typist = Typist.started()
  assert.deepEqual(typist.types('a'), ['input a'])
  assert.deepEqual(typist.types('b'), [])
  assert.deepEqual(typist.inputFlows(), ['input b'])
  assert.deepEqual(typist.types('c'), ['input c'])
  assert.deepEqual(typist.resizes(100), ['size 100'])
  assert.deepEqual(typist.types('d'), [])
  assert.deepEqual(typist.leaves(), [])
  assert.equal(typist.isInputSent, false)
  assert.deepEqual(typist.sizeIsSet(), ['input d'])
  assert.equal(typist.isInputSent, true)
  assert.equal(typist.hasInput, true)
  typist.inputIsReceipted(4)
  assert.equal(typist.hasInput, false)
})

test('the end of input is on its way until it is accepted, also behind what flows', () => {
  const typist = Typist.started()
  typist.types('a')
  typist.inputFlows()
  assert.deepEqual(typist.sends({ channel: 'halfClose' }), ['input .'])
  typist.inputIsReceipted(1)
  assert.equal(typist.hasInput, true)
  typist.inputIsTaken()
  assert.equal(typist.hasInput, false)
})

test('only receipts give credit for what flows, and what broke off gets none', () => {
  const typist = Typist.started()
  const step = LIMITS.stdinCreditBytes / 4
  typist.types('x'.repeat(step))
  assert.deepEqual(typist.inputFlows(), [])
  typist.types('y'.repeat(step))
  assert.deepEqual(typist.inputIsReceipted(step - 1), [])
  assert.deepEqual(typist.inputIsReceipted(1), [step])
  assert.deepEqual(typist.inputBreaksOff(), [])
  assert.equal(typist.hasInput, false)
})
