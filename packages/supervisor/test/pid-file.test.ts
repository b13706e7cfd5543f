import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { paths } from '../src/installation.ts'
import { readPidFile, writePidFile } from '../src/pid-file.ts'
import { identityOf, signalProcess } from '../src/process-identity.ts'

const home = mkdtempSync(join(tmpdir(), 'sandglass-pid-'))
mkdirSync(paths.run(home))
const child = spawn('sleep', ['300'], { env: { PATH: '/usr/bin:/bin', SANDGLASS_HOME: home }, stdio: 'ignore' })
await once(child, 'spawn')
const pid = child.pid ?? 0
after(() => {
  child.kill('SIGKILL')
  rmSync(home, { recursive: true, force: true })
})

test('a written pid file is read back while its process lives', () => {
  writePidFile(home, 'api', pid)
  assert.equal(readPidFile(home, 'api')?.pid, pid)
})

test('a pid with another start time is another process', () => {
  writeFileSync(paths.pid(home, 'api'), `${pid} 12345\n`)
  assert.equal(readPidFile(home, 'api'), undefined)
  assert.equal(signalProcess({ pid, startTime: '12345' }, 'SIGKILL'), false)
  assert.ok(identityOf(pid))
})

test('anything but two numbers means nothing', () => {
  for (const text of ['', `${pid}\n`, `${pid} x\n`, '-1 5\n', `${pid} 1 2\n`, '0 0\n', '1\n']) {
    writeFileSync(paths.pid(home, 'api'), text)
    assert.equal(readPidFile(home, 'api'), undefined, JSON.stringify(text))
  }
})
