import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Audio, Document, Image, Video } from '@skein/ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

describe('files', () => {
  const text = (value: string): Uint8Array => new TextEncoder().encode(value)
  const jpeg = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 0, 16])
  const wav = text('RIFF\x24\0\0\0WAVEfmt ')
  const mp4 = Uint8Array.from([0, 0, 0, 24, ...text('ftypisom')])
  const pdf = text('%PDF-1.7\n')
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'media-'))
    // Each name promises another type than the data has.
    const files = { 'a.png': jpeg, 'a.mp3': wav, 'a.webm': mp4, 'a.txt': pdf }
    for (const [name, data] of Object.entries(files)) await writeFile(join(folder, name), data)
  })
  afterAll(() => rm(folder, { recursive: true }))

  const readers = [
    ['a.png', 'image/jpeg', 'image/png', Image],
    ['a.mp3', 'audio/wav', 'audio/mpeg', Audio],
    ['a.webm', 'video/mp4', 'video/webm', Video],
  ] as const
  test.each(readers)(
    'UPP-161 %s is %s by its data; declared as %s it is refused',
    async (name, type, declared, Media) => {
      const path = join(folder, name)
      expect((await Media.fromPath(path)).mimeType).toBe(type)
      expect((await Media.fromPath(path, { mimeType: type })).mimeType).toBe(type)
      const refused = { code: 'INVALID_REQUEST' }
      for (const mimeType of [declared, `${declared}; x=1`])
        await expect(Media.fromPath(path, { mimeType })).rejects.toMatchObject(refused)
    },
  )

  test('UPP-161 a document is what its data is, not its name', async () => {
    const path = join(folder, 'a.txt')
    expect((await Document.fromPath(path)).mimeType).toBe('application/pdf')
    const mimeType = 'application/msword'
    await expect(Document.fromPath(path, 't', { mimeType })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
  })

  test('UPP-162 the limit of every kind of file: its size passes, one byte less does not', async () => {
    for (const [name, , , Media] of readers) {
      const path = join(folder, name)
      const { length } = { 'a.png': jpeg, 'a.mp3': wav, 'a.webm': mp4 }[name]
      await Media.fromPath(path, { maxBytes: length })
      await expect(Media.fromPath(path, { maxBytes: length - 1 })).rejects.toThrow('the limit is')
    }
    const path = join(folder, 'a.txt')
    await Document.fromPath(path, 't', { maxBytes: pdf.length })
    const small = { maxBytes: pdf.length - 1 }
    await expect(Document.fromPath(path, 't', small)).rejects.toThrow('the limit is')
  })
})
