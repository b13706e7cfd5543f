/** Which boot of the machine this is. */
import { readFile } from 'node:fs/promises'

export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}
