import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, link, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { SandglassError } from '../src/index.ts'
import { decodePaxRecords, encodeTarHeader, TAR_END, type TarEntry, tarPadding } from '../src/tar-format.ts'
import { readTar } from '../src/tar-reader.ts'
import { extractTar } from '../src/tree-download.ts'
import { treeAsTar } from '../src/tree-upload.ts'

const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

async function scratch(context: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-tar-'))
  context.after(() => rm(directory, { recursive: true, force: true }))
  return directory
}

const bytes = (name: string | Uint8Array): Buffer => Buffer.from(name)
const entry = (change: Partial<TarEntry> & { name: Uint8Array }): TarEntry => ({
  type: 'file',
  size: 0,
  mode: 0o644,
  mtimeMs: 1_000_000,
  linkName: new Uint8Array(0),
  ...change,
})

function archive(...items: { entry: TarEntry; content?: Uint8Array }[]): Buffer {
  return Buffer.concat([
    ...items.flatMap(({ entry: header, content = new Uint8Array(0) }) => [...encodeTarHeader(header), content, new Uint8Array(tarPadding(content.byteLength))]),
    TAR_END,
  ])
}

async function* inPieces(data: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < data.byteLength; start += size) yield data.subarray(start, start + size)
}

async function gather(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('a tree goes out and comes back: odd names, long names, modes, times, links, empty and large files', async (context) => {
  const root = await scratch(context)
  const from = bytes(join(root, 'from'))
  await mkdir(from)
  const at = (name: string | Uint8Array) => Buffer.concat([from, bytes('/'), bytes(name)])
  const names = ['plain', '-x', 'a b', '#?%&"\'', 'new\nline', 'e\u0301', '日本語🤣', 'x'.repeat(255), Uint8Array.from([0xff, 0xfe, 0x41])]
  for (const name of names) await writeFile(at(name), Buffer.from(name))
  await mkdir(at('deep'))
  let deep = 'deep'
  for (let level = 0; level < 12; level += 1) {
    deep += `/${'directory'.repeat(10)}`
    await mkdir(at(deep))
  }
  await writeFile(at(`${deep}/bottom`), 'bottom')
  for (const size of [0, 1, 511, 512, 513, 300_000]) await writeFile(at(`size-${size}`), randomBytes(size))
  await symlink('../outside\xff', at('link'))
  await symlink(`long/${'y'.repeat(200)}`, at('long-link'))
  await chmod(at('plain'), 0o751)
  await mkdir(at('closed'))
  await chmod(at('closed'), 0o500)
  const then = new Date('2001-02-03T04:05:06Z')
  await utimes(at('plain'), then, then)
  await utimes(at('closed'), then, then)

  const tar = await gather(treeAsTar(from))
  for (const pieces of [7, 512, 100_000]) {
    const to = bytes(join(root, `to-${pieces}`))
    await extractTar(inPieces(tar, pieces), to)
    const same = (name: string | Uint8Array) => Buffer.concat([to, bytes('/'), bytes(name)])
    for (const name of names) assert.ok((await readFile(same(name))).equals(Buffer.from(name)))
    assert.equal(await readFile(same(`${deep}/bottom`), 'utf8'), 'bottom')
    for (const size of [0, 1, 511, 512, 513, 300_000]) assert.ok((await readFile(same(`size-${size}`))).equals(await readFile(at(`size-${size}`))))
    assert.ok((await readlink(same('link'), { encoding: 'buffer' })).equals(bytes('../outside\xff')))
    assert.equal(await readlink(same('long-link')), `long/${'y'.repeat(200)}`)
    assert.equal((await lstat(same('plain'))).mode & 0o777, 0o751)
    assert.equal((await lstat(same('plain'))).mtimeMs, then.getTime())
    assert.equal((await lstat(same('closed'))).mode & 0o777, 0o500)
    assert.equal((await lstat(same('closed'))).mtimeMs, then.getTime())
    assert.equal((await readdir(to)).length, (await readdir(from)).length)
  }
})

test('archives of GNU tar are read, and it reads ours', async (context) => {
  const root = await scratch(context)
  await mkdir(join(root, 'from'))
  await writeFile(join(root, 'from', 'n'.repeat(180)), 'long')
  await writeFile(join(root, 'from', 'one'), 'one')
  await link(join(root, 'from', 'one'), join(root, 'from', 'two'))
  for (const format of ['gnu', 'pax', 'v7']) {
    const tar = execFileSync('tar', ['-C', join(root, 'from'), `--format=${format}`, '-cf', '-', ...(format === 'v7' ? ['one', 'two'] : ['.'])], {
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const to = join(root, format)
    await extractTar(inPieces(tar, 1_000), bytes(to))
    assert.equal(await readFile(join(to, 'two'), 'utf8'), 'one')
    if (format !== 'v7') assert.equal(await readFile(join(to, 'n'.repeat(180)), 'utf8'), 'long')
  }
  const ours = await gather(treeAsTar(bytes(join(root, 'from'))))
  const listing = execFileSync('tar', ['-tf', '-'], { input: ours, encoding: 'utf8' })
  assert.deepEqual(listing.trim().split('\n').sort(), ['./', 'n'.repeat(180), 'one', 'two'].sort())
})

test('no entry leaves the target (FI5)', async (context) => {
  const root = await scratch(context)
  await mkdir(join(root, 'outside'))
  await writeFile(join(root, 'outside', 'victim'), 'untouched')
  const content = Buffer.from('evil')
  const file = (name: string) => ({ entry: entry({ name: bytes(name), size: 4 }), content })
  const linkTo = (name: string, target: string) => ({ entry: entry({ type: 'symlink', name: bytes(name), linkName: bytes(target) }) })
  const hardLink = (name: string, target: string) => ({ entry: entry({ type: 'hardlink', name: bytes(name), linkName: bytes(target) }) })
  const refused = {
    'dot dot': archive(file('../outside/victim')),
    'dot dot inside': archive(file('a/../../outside/victim')),
    absolute: archive(file(join(root, 'outside', 'victim'))),
    'hard link out': archive(hardLink('x', '../outside/victim')),
    'hard link to a link': archive({ entry: entry({ type: 'directory', name: bytes('d') }) }, hardLink('x', 'd')),
    'name of nothing': archive(file('.')),
  }
  for (const [what, tar] of Object.entries(refused)) {
    await assert.rejects(extractTar(inPieces(tar, 512), bytes(join(root, 'to'))), failsWith('archive_invalid'), what)
  }
  // A link that is already there, and one that the archive itself brings, are both no way out.
  await mkdir(join(root, 'there'))
  await symlink('../outside', join(root, 'there', 'link'))
  await assert.rejects(extractTar(inPieces(archive(file('link/victim')), 512), bytes(join(root, 'there'))), failsWith('archive_invalid'))
  await assert.rejects(extractTar(inPieces(archive(linkTo('link', '../outside'), file('link/victim')), 512), bytes(join(root, 'brought'))))
  await symlink('../outside/victim', join(root, 'there', 'file'))
  await extractTar(inPieces(archive(file('file')), 512), bytes(join(root, 'there')))
  assert.equal(await readFile(join(root, 'there', 'file'), 'utf8'), 'evil')
  assert.equal(await readFile(join(root, 'outside', 'victim'), 'utf8'), 'untouched')
  assert.deepEqual(await readdir(join(root, 'outside')), ['victim'])
})

test('devices, pipes, damage and cut-off archives are refused by name, set-user bits are not kept', async (context) => {
  const root = await scratch(context)
  const target = () => bytes(join(root, 'to'))
  const good = archive({ entry: entry({ name: bytes('x'), size: 3, mode: 0o4755 }), content: bytes('abc') })
  await extractTar(inPieces(good, 512), target())
  assert.equal((await lstat(join(root, 'to', 'x'))).mode & 0o7777, 0o755)
  for (const flag of ['3', '4', '6', 'S']) {
    const special = Buffer.from(good)
    special[156] = flag.charCodeAt(0)
    fixChecksum(special)
    await assert.rejects(extractTar(inPieces(special, 512), target()), failsWith('archive_invalid'), flag)
  }
  const damaged = Buffer.from(good)
  damaged[0] = 0x79
  await assert.rejects(extractTar(inPieces(damaged, 512), target()), failsWith('archive_invalid'))
  for (const length of [1, 511, 512, 513, 1_023, 1_024]) {
    await assert.rejects(extractTar(inPieces(good.subarray(0, length), 512), target()), failsWith('archive_invalid'), String(length))
  }
  await assert.rejects(extractTar(inPieces(Buffer.alloc(0), 1), target()), failsWith('archive_invalid'))
})

function fixChecksum(block: Buffer): void {
  block.fill(' ', 148, 156)
  let sum = 0
  for (const byte of block.subarray(0, 512)) sum += byte
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
}

test('sizes beyond eight gibibytes, PAX records, and content that nobody reads', async () => {
  const size = 9 * 1024 ** 3
  const [header] = encodeTarHeader(entry({ name: bytes('big'), size }))
  const items = readTar(inPieces(header ?? new Uint8Array(0), 512))
  assert.equal((await items.next()).value?.entry.size, size)
  const records = decodePaxRecords(bytes('18 path=some/name\n21 mtime=1234567.125\n'))
  assert.equal(Buffer.from(records.get('path') ?? []).toString(), 'some/name')
  for (const bad of ['x', '5 a\n', '99 path=x\n', '8 path=x', '0 a=b\n']) assert.throws(() => decodePaxRecords(bytes(bad)), failsWith('archive_invalid'), bad)
  const two = archive(
    { entry: entry({ name: bytes('a'), size: 1_000 }), content: randomBytes(1_000) },
    { entry: entry({ name: bytes('b'), size: 2 }), content: bytes('ok') },
  )
  const seen: string[] = []
  for await (const item of readTar(inPieces(two, 300))) {
    seen.push(Buffer.from(item.entry.name).toString())
    if (seen.length === 2) assert.equal((await gather(item.content)).toString(), 'ok')
  }
  assert.deepEqual(seen, ['a', 'b'])
})

test('random damage is refused or read, never anything else', async (context) => {
  const root = await scratch(context)
  const good = archive(
    { entry: entry({ name: bytes('d'), type: 'directory' }) },
    { entry: entry({ name: bytes(`d/${'n'.repeat(150)}`), size: 600 }), content: randomBytes(600) },
    { entry: entry({ name: bytes('l'), type: 'symlink', linkName: bytes('d') }) },
  )
  for (let seed = 0; seed < 200; seed += 1) {
    const damaged = Buffer.from(good)
    const digest = createHash('sha256').update(String(seed)).digest()
    for (let index = 0; index < 8; index += 2) damaged[digest.readUInt16BE(index) % damaged.byteLength] = digest[index + 8] ?? 0
    try {
      await extractTar(inPieces(damaged, 777), bytes(join(root, String(seed))))
    } catch (error) {
      assert.ok(failsWith('archive_invalid')(error) || (error instanceof Error && 'code' in error && typeof error.code === 'string'), `seed ${seed}: ${error}`)
    }
  }
})
