/** Every sandbox that is measured proves that nobody has used it: no mark of an earlier user, a boot id and randomness that nobody had. */
import type { Sandbox } from '@sandglass/sdk'

export const BOOT_ID_COMMAND = ['/bin/cat', '/proc/sys/kernel/random/boot_id']

const MARK = '/var/tmp/bench-was-here'
const PROOF = `test ! -e ${MARK} || { echo used; exit 1; }; : > ${MARK}; cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | od -An -tx1`
const BOOT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class NotFresh extends Error {
  override readonly name = 'NotFresh'
}

export class Freshness {
  readonly #bootIds = new Map<string, string>()
  readonly #random = new Set<string>()

  /** Keeps a boot id that a sandbox has told. @throws NotFresh when another sandbox had it */
  told(sandbox: string, text: string): void {
    const bootId = text.trim()
    if (!BOOT_ID.test(bootId)) throw new NotFresh(`${sandbox} told no boot id but ${JSON.stringify(bootId.slice(0, 80))}`)
    const before = this.#bootIds.get(bootId)
    if (before !== undefined && before !== sandbox) throw new NotFresh(`${sandbox} has the boot id of ${before}`)
    this.#bootIds.set(bootId, sandbox)
  }

  /** @throws NotFresh */
  async prove(sandbox: Sandbox): Promise<void> {
    const { stdout, exitCode } = await sandbox.exec(['/bin/sh', '-c', PROOF])
    const [bootId = '', random = ''] = stdout.split('\n')
    if (exitCode !== 0) throw new NotFresh(`${sandbox.id} was used before: ${stdout.slice(0, 80)}`)
    this.told(sandbox.id, bootId)
    if (random.trim() === '' || this.#random.has(random)) throw new NotFresh(`${sandbox.id} has randomness that another one had`)
    this.#random.add(random)
  }
}
