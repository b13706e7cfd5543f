/** Programs that every mocked sandbox has: the few that tests of anything start. */
import type { MockProgram } from './process.ts'

export const PROGRAMS: Readonly<Record<string, MockProgram>> = {
  true: () => 0,
  false: () => 1,
  echo({ argv, write }) {
    write(`${argv.slice(1).join(' ')}\n`)
    return 0
  },
  pwd({ cwd, write }) {
    write(`${cwd}\n`)
    return 0
  },
  printenv({ argv, env, write }) {
    const value = env[argv[1] ?? '']
    if (value === undefined) return 1
    write(`${value}\n`)
    return 0
  },
  async cat({ argv, stdin, write, writeError, files }) {
    if (argv.length === 1) for await (const bytes of stdin) write(bytes)
    for (const path of argv.slice(1)) {
      try {
        write(files.read(path))
      } catch {
        writeError(`cat: ${path}: No such file or directory\n`)
        return 1
      }
    }
    return 0
  },
  async sleep({ argv, sleep }) {
    await sleep(Number(argv[1] ?? 0) * 1000)
    return 0
  },
}
