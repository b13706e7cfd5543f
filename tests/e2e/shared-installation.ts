/** One installation for all files of a run: started before the first file and named in the environment; taking it down proves that nothing is left. */
import { type Owned, startInstallation } from './installation.ts'

let owned: Owned | undefined

export async function setUp(): Promise<void> {
  owned = await startInstallation()
  process.env['SANDGLASS_TEST_HOME'] = owned.installation.home
}

export async function tearDown(): Promise<void> {
  delete process.env['SANDGLASS_TEST_HOME']
  await owned?.stop()
}
