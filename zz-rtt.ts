import { readFileSync } from 'node:fs'
import { Sandbox, Sandglass } from '@sandglass/sdk'
const [home, url] = [process.argv[2] ?? '', process.argv[3] ?? '']
const client = new Sandglass({ url, apiKey: readFileSync(`${home}/admin.key`, 'utf8').trim() })
const s = await Sandbox.create({ client, resources: { vcpu: 2, memoryMb: 512 }, ttlSeconds: 600 })
const once = async () => { const t = performance.now(); await s.exec(['true']); return performance.now() - t }
for (let i = 0; i < 100; i++) await once()
const t: number[] = []
for (let i = 0; i < 400; i++) t.push(await once())
t.sort((a, b) => a - b)
const rates: number[] = []
for (let i = 0; i < 3; i++) {
  const b = performance.now(); let n = 0
  const p = await s.spawn(['head', '-c', '268435456', '/dev/zero'])
  for await (const c of p.stdout) n += c.byteLength
  await p.exit
  rates.push(n / 1048576 / ((performance.now() - b) / 1000))
}
console.log(home, 'p50', t[200]!.toFixed(2), 'p99', t[396]!.toFixed(2), 'ms; MiB/s', rates.map((r) => r.toFixed(0)).join(' '))
await s.delete()
