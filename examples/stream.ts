/** Streams output while a program runs, writes to its input, and comes back to it as another client would. Prints `step 3` and `HELLO, WORLD`. */
import { Sandbox } from '@sandglass/sdk'

await using sandbox = await Sandbox.create({ ttlSeconds: 600 })

// Bytes as they come. A slow reader slows the program down; a broken connection is taken up where it broke.
const build = await sandbox.spawn(['sh', '-c', 'for step in 1 2 3; do echo "step $step"; done'], { timeoutMs: 60_000 })
for await (const chunk of build.stdout) process.stdout.write(chunk)
const result = await build.exit
process.stdout.write(`exit code ${result.exitCode}\n`)

// Input is written with back-pressure; close it, and the program sees the end.
const upper = await sandbox.spawn(['tr', 'a-z', 'A-Z'], { stdin: true })
await upper.stdin.write('hello, ')
await upper.stdin.write('world\n')
upper.stdin.close()
process.stdout.write(await upper.stdout.readText())

// Another client, later: exact bytes from any offset that is still kept.
const again = await sandbox.process(build.id)
for await (const chunk of again.output({ stream: 'stdout', since: 7 })) process.stdout.write(chunk)

// A process that goes on without anybody watching.
const server = await sandbox.start(['python3', '-m', 'http.server', '9000'])
const running = (await sandbox.processes()).filter((process) => process.running)
process.stdout.write(`${running.length} running\n`)
await server.kill()
