/**
 * Makes the package that is published: JavaScript and declarations, without this repository.
 *
 * The repository runs its TypeScript as it is, but Node.js strips no types inside node_modules, so what is published is compiled. The contract
 * is not published on its own: the files of it that the SDK uses go along, and imports of it become relative. There is no bundle: modules stay
 * modules, and whoever bundles for a browser leaves out what is not used.
 */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const SDK = 'sdk/src'
const CONTRACT = 'contract/src'

type Manifest = {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly engines?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
}

function manifestOf(place: string): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'packages', place, 'package.json'), 'utf8'))
}

/** Those that the SDK names; what they name in turn follows by itself. */
function contractFiles(): string[] {
  const names = globSync('**/*.ts', { cwd: join(ROOT, 'packages', SDK) }).flatMap((file) =>
    [...readFileSync(join(ROOT, 'packages', SDK, file), 'utf8').matchAll(/'@sandglass\/contract\/([a-z-]+)'/g)].map((match) => match[1]),
  )
  return [...new Set(names)].map((name) => join(CONTRACT, `${name}.ts`))
}

function compile(target: string): void {
  const config = join(target, 'tsconfig.json')
  const options = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      outDir: target,
      rootDir: join(ROOT, 'packages'),
      declaration: true,
      rewriteRelativeImportExtensions: true,
      allowImportingTsExtensions: false,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    },
    // Named one by one: what is reached through node_modules would count as somebody else's, and not be compiled.
    files: [...['index.ts', 'mock/index.ts', 'platform.ts', 'platform-browser.ts'].map((file) => join(SDK, file)), ...contractFiles()].map((file) =>
      join(ROOT, 'packages', file),
    ),
    include: [],
  }
  writeFileSync(config, JSON.stringify(options))
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['--project', config], { stdio: 'inherit' })
  rmSync(config)
}

const IMPORT = /(\b(?:from |import \(?|import\()['"])([^'"]+)(['"])/g

/** The specifier of a module, as it is called in the package. */
function specifierIn(file: string, target: string, specifier: string): string {
  const contract = /^@sandglass\/contract\/([a-z-]+)$/.exec(specifier)?.[1]
  if (contract !== undefined) {
    const path = relative(dirname(file), join(target, CONTRACT, `${contract}.js`))
    return path.startsWith('.') ? path : `./${path}`
  }
  return specifier.startsWith('.') ? specifier.replace(/\.ts$/, '.js') : specifier
}

function rewrite(target: string): void {
  for (const name of globSync('**/*.{js,d.ts}', { cwd: target })) {
    const file = join(target, name)
    const text = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      text.replace(IMPORT, (_, before: string, specifier: string, after: string) => before + specifierIn(file, target, specifier) + after),
    )
  }
}

/** @returns the directory, ready for `npm pack` */
export function buildSdkPackage(target: string): string {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  compile(target)
  rewrite(target)
  const { name, version, license, engines } = manifestOf('sdk')
  const entry = (file: string) => ({ types: `./${SDK}/${file}.d.ts`, default: `./${SDK}/${file}.js` })
  const manifest = {
    name,
    version,
    license,
    description: 'Sandglass: isolated machines from code.',
    type: 'module',
    engines,
    sideEffects: false,
    exports: { '.': entry('index'), './mock': entry('mock/index') },
    imports: { '#platform': { browser: `./${SDK}/platform-browser.js`, default: `./${SDK}/platform.js` } },
    dependencies: manifestOf('contract').dependencies,
  }
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const file of ['README.md', '../../LICENSE'].filter((path) => globSync(join(ROOT, 'packages/sdk', path)).length > 0)) {
    writeFileSync(join(target, file.split('/').at(-1) ?? file), readFileSync(join(ROOT, 'packages/sdk', file)))
  }
  return target
}
