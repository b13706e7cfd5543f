/** Where things of a lab lie: what it shares as in an installation, and a folder for each node. */
import { join } from 'node:path'

export const labPaths = {
  plan: (home: string): string => join(home, 'lab.json'),
  node: (home: string, node: string): string => join(home, 'nodes', node),
  /** A host's disk: small, of its own, so that it can be full. */
  disk: (home: string, node: string): string => join(home, 'nodes', node, 'disk'),
  /** What a host keeps until the next boot. */
  runDirectory: (home: string, node: string): string => join(home, 'nodes', node, 'run'),
  diskImage: (home: string, node: string): string => join(home, 'nodes', node, 'disk.img'),
  ballast: (home: string, node: string): string => join(home, 'nodes', node, 'disk', 'ballast'),
  /** What its wall clock is ahead, for libfaketime. */
  clock: (home: string, node: string): string => join(home, 'nodes', node, 'clock'),
  templates: (home: string): string => join(home, 'templates'),
  databasePassword: (home: string): string => join(home, 'secrets', 'database.password'),
  /** As libpq and its like read it. */
  databasePassfile: (home: string): string => join(home, 'secrets', 'pgpass'),
}
