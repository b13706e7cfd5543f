/** `npm run sdk-package [DIRECTORY]`: makes the package of the SDK, by default in packages/sdk/dist; then `npm publish packages/sdk/dist`. */
import { join } from 'node:path'
import { buildSdkPackage } from './build.ts'

process.stdout.write(`${buildSdkPackage(process.argv[2] ?? join(import.meta.dirname, '../../packages/sdk/dist'))}\n`)
