/** `doctor`: each check says what it saw, what that means, and what to type. */
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { ARTEFACT_CHECKS } from '../doctor/artefact-checks.ts'
import type { Check, Finding } from '../doctor/check.ts'
import { INSTALLATION_CHECKS } from '../doctor/installation-checks.ts'
import { type Machine, thisMachine } from '../doctor/machine.ts'
import { MACHINE_CHECKS } from '../doctor/machine-checks.ts'
import type { Io } from '../io.ts'
import { plain } from '../text.ts'

export const command: Command = {
  usage: 'doctor',
  help: `Checks this machine and the installation on it. Each check is ok, warn or fail, says what that means and what to type.
The exit code is 0, or 1 when a check fails. With --json a list of {check, status, saw, means, fix}.`,
  run,
}

export type Report = Finding & { readonly check: string }

const CHECKS: readonly Check[] = [...MACHINE_CHECKS, ...ARTEFACT_CHECKS, ...INSTALLATION_CHECKS]
const SIGNS = { ok: '\u001b[32mok  \u001b[0m', warn: '\u001b[33mwarn\u001b[0m', fail: '\u001b[31mfail\u001b[0m' } as const

/** A check that breaks is itself a finding. */
async function examine(check: Check, machine: Machine): Promise<Report> {
  try {
    return { check: check.name, ...(await check.run(machine)) }
  } catch (error) {
    return {
      check: check.name,
      status: 'fail',
      saw: error instanceof Error ? error.message : String(error),
      means: 'The check itself failed.',
      fix: 'report it',
    }
  }
}

function describe(report: Report, color: boolean, width: number): string {
  const sign = color ? SIGNS[report.status] : report.status.padEnd(4)
  const lines = [`${sign}  ${report.check.padEnd(width)}  ${plain(report.saw)}`]
  const indent = ' '.repeat(6 + width + 2)
  if (report.means !== undefined) lines.push(`${indent}${plain(report.means)}`)
  if (report.fix !== undefined) lines.push(`${indent}type: ${plain(report.fix)}`)
  return `${lines.join('\n')}\n`
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 0)
  const machine = thisMachine(io.environment)
  const reports = await Promise.all(CHECKS.map((check) => examine(check, machine)))
  const format = formatOf(values)
  if (format === 'json') await io.stdout.write(`${JSON.stringify(reports)}\n`)
  else if (format === 'lines') await io.stdout.write(reports.map((report) => `${JSON.stringify(report)}\n`).join(''))
  else {
    const width = Math.max(...CHECKS.map((check) => check.name.length))
    await io.stdout.write(reports.map((report) => describe(report, io.color, width)).join(''))
  }
  return reports.some((report) => report.status === 'fail') ? 1 : 0
}
