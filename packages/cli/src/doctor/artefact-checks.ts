/** Checks of what the launcher installs: gVisor, the guest agent, the warden, the base template. */
import { parserOf } from '@sandglass/contract/schema'
import { TemplateManifestSchema } from '@sandglass/contract/template'
import { bytesText } from '../text.ts'
import { type Check, fail, ok } from './check.ts'

const INSTALL = './sandglass up'
const MiB = 1024 * 1024
const manifest = parserOf(TemplateManifestSchema)

const runsc: Check = {
  name: 'runsc',
  async run(machine) {
    const path = `${machine.cache}/bin/runsc`
    if ((await machine.file(path))?.executable !== true) return fail(`${path} is missing`, 'gVisor runs every sandbox.', INSTALL)
    const version = await machine.run(path, ['--version'])
    return version?.code === 0
      ? ok(version.output.split('\n')[0] ?? path)
      : fail(`${path} --version fails`, 'gVisor runs every sandbox.', `rm ${path}; ${INSTALL}`)
  },
}

const guestAgent: Check = {
  name: 'guest agent',
  async run(machine) {
    const path = `${machine.cache}/guest-agent/sandglass-guest`
    const file = await machine.file(path)
    if (file?.executable !== true) return fail(`${path} is missing`, 'It is the first process of every sandbox.', INSTALL)
    return ok(`${path}, ${(file.size / MiB).toFixed(1)} MB`)
  },
}

const warden: Check = {
  name: 'warden',
  async run(machine) {
    const path = `${machine.cache}/warden/sandglass-warden`
    if ((await machine.file(path))?.executable !== true) return fail(`${path} is missing`, 'Nothing starts on a host without it.', INSTALL)
    const version = await machine.run(path, ['--version'])
    return version?.code === 0
      ? ok(`${path} ${version.output.trim()}`)
      : fail(`${path} --version fails`, 'Nothing starts on a host without it.', `rm ${path}; ${INSTALL}`)
  },
}

const template: Check = {
  name: 'template base',
  async run(machine) {
    const path = `${machine.cache}/templates/base.json`
    const text = await machine.read(path)
    if (text === undefined) return fail(`${path} is missing`, 'Sandboxes are made from it.', INSTALL)
    const value: unknown = parsed(text)
    if (!manifest.check(value)) return fail(`${path} is not a template manifest`, 'Sandboxes are made from it.', `rm ${path}; ${INSTALL}`)
    const file = await machine.file(`${machine.cache}/templates/${value.file}`)
    if (file?.size !== value.size_bytes) return fail(`${value.file} is missing or has the wrong size`, 'Sandboxes are made from it.', `rm ${path}; ${INSTALL}`)
    return ok(`${value.digest.slice(0, 19)}…, ${bytesText(value.size_bytes)}`)
  },
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const ARTEFACT_CHECKS: readonly Check[] = [runsc, guestAgent, warden, template]
