/** The suite that the SDK's mock passes, against a real installation: what both do is the same. */
import { contractSuite } from '../../packages/sdk/test/mock-contract.ts'
import { sharedInstallation } from './file-installation.ts'

contractSuite(async () => (await sharedInstallation()).client())
