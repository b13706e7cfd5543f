/** Moves files and trees in and out. Prints `sum 7` and `made inside`, made by programs in the sandbox. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sandbox } from '@sandglass/sdk'

await using sandbox = await Sandbox.create({ ttlSeconds: 600 })

// One file: it is there, complete, when this resolves.
await sandbox.files.write('/workspace/in.csv', 'name,score\nada,3\ngrace,4\n')
await sandbox.exec.shell('tail -n +2 in.csv | cut -d, -f2 | paste -sd+ | python3 -c "print(eval(input()))" > sum.txt', { cwd: '/workspace', check: true })
process.stdout.write(`sum ${await sandbox.files.readText('/workspace/sum.txt')}`)

for await (const entry of sandbox.files.list('/workspace')) process.stdout.write(`${entry.name} ${entry.size}\n`)

// Trees, with modes, times and links.
const local = await mkdtemp(join(tmpdir(), 'sandglass-example-'))
try {
  await writeFile(join(local, 'main.py'), 'import pathlib\npathlib.Path("result.txt").write_text("made inside\\n")\n')
  await sandbox.files.upload(local, '/workspace/project')
  await sandbox.exec(['python3', 'main.py'], { cwd: '/workspace/project', check: true })
  await sandbox.files.download('/workspace/project', join(local, 'back'))
  process.stdout.write(await readFile(join(local, 'back/result.txt'), 'utf8'))
} finally {
  await rm(local, { recursive: true })
}
