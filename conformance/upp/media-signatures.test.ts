/** Which first bytes are a type, and which only look like one. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Audio, Document, Image, Video } from '@skein/ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const latin1 = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'latin1'))
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
const refused = expect.objectContaining({ name: 'UPPError', code: 'INVALID_REQUEST' })

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signatures-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function file(name: string, data: Uint8Array): Promise<string> {
  await writeFile(join(folder, name), data)
  return join(folder, name)
}

const bitmap = (size: number): Uint8Array =>
  latin1(`BM\x9a\0\0\0\0\0\0\0\x36\0\0\0${String.fromCharCode(size)}\0\0\0\x01\0\0\0`)

/** The beginnings of real files of each type. */
const real: readonly (readonly [type: string, ...data: Uint8Array[]])[] = [
  ['image/png', latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')],
  ['image/jpeg', latin1('\xff\xd8\xff\xe0\0\x10JFIF'), latin1('\xff\xd8\xff\xdb\0\x43')],
  ['image/gif', latin1('GIF89a\x01\0\x01\0'), latin1('GIF87a\x01\0\x01\0')],
  ['image/webp', latin1('RIFF\x24\0\0\0WEBPVP8 ')],
  ['image/bmp', ...[12, 16, 40, 52, 56, 64, 108, 124].map(bitmap)],
  ['image/tiff', latin1('II*\0\x08\0\0\0'), latin1('MM\0*\0\0\0\x08')],
  ['image/avif', latin1('\0\0\0\x1cftypavif'), latin1('\0\0\0\x1cftypavis')],
  ['image/heic', latin1('\0\0\0\x1cftypheic'), latin1('\0\0\0\x1cftypmif1')],
  ['image/svg+xml', latin1('<svg xmlns="'), latin1('<?xml version="1.0"?>\n<svg>')],
  ['audio/wav', latin1('RIFF\x24\0\0\0WAVEfmt ')],
  ['audio/flac', latin1('fLaC\0\0\0\x22')],
  ['audio/ogg', latin1('OggS\0\x02\0\0\0\0\0\0\0\0OpusHead')],
  ['audio/mp4', latin1('\0\0\0\x1cftypM4A ')],
  [
    'audio/mpeg',
    ...['ID3\x04\0\0\0\0\0\0', 'ID3\x03\0\0\0\0\x21\x76', 'ID3\x02\0\0\0\0\0\0'].map(latin1),
    // MPEG 1 layers 3 and 2, MPEG 2, MPEG 2.5; with and without a checksum.
    ...['\xff\xfb\x90\x64', '\xff\xfa\x90\x64', '\xff\xfd\xa4\0', '\xff\xf3\x40\xc0'].map(latin1),
    ...['\xff\xf2\x44\xc0', '\xff\xe3\x18\xc4', '\xff\xf5\x84\0'].map(latin1),
  ],
  ['audio/aac', latin1('\xff\xf1\x50\x80\x02\x1f\xfc'), latin1('\xff\xf9\x6c\x40\x02\x1f\xfc')],
  ['video/mp4', latin1('\0\0\0\x18ftypisom'), latin1('\0\0\0\x18ftypmp42')],
  ['video/quicktime', latin1('\0\0\0\x14ftypqt  ')],
  ['video/webm', latin1('\x1a\x45\xdf\xa3\x01\0\0\0')],
  ['video/ogg', latin1('OggS\0\x02\0\0\0\0\0\0\0\0\x80theora')],
]
const all = real.flatMap(([type, ...data]) => data.map((bytes) => [type, bytes] as const))
const mediaOf = { image: Image, audio: Audio, video: Video }
const familyOf = (type: string): keyof typeof mediaOf => type.split('/')[0] as keyof typeof mediaOf

describe('real files', () => {
  test.each(all)('UPP-072 UPP-074 UPP-075 %s is recognised by its bytes', async (type, bytes) => {
    const Media = mediaOf[familyOf(type)]
    expect(Media.fromBytes(bytes).mimeType).toBe(type)
    expect(Media.fromBase64(base64(bytes)).mimeType).toBe(type)
    // A name that says otherwise does not count.
    const other = type.startsWith('image/') ? 'a.mp3' : 'a.png'
    expect((await Media.fromPath(await file(other, bytes))).mimeType).toBe(type)
  })

  test.each(all)('UPP-161 %s is refused as any other type of its family', (type, bytes) => {
    const family = familyOf(type)
    const container = (one: string): string => one.replace(/^audio\/(mp4|ogg)$/, 'video/$1')
    for (const [other] of real)
      if (other.startsWith(family) && container(other) !== container(type))
        expect(() => mediaOf[family].fromBytes(bytes, other)).toThrow(refused)
  })

  test.each(all)(
    'UPP-161 %s is no text, JSON or PDF in any form of document',
    async (type, bytes) => {
      const isText = type === 'image/svg+xml'
      for (const mimeType of [
        'text/plain',
        'text/csv; charset=utf-8',
        'application/json',
        'application/pdf',
      ]) {
        const path = await file('a', bytes)
        const make = [
          async () => Document.fromBase64(base64(bytes), mimeType),
          async () => Document.fromPath(path, 't', { mimeType }),
        ]
        for (const run of make)
          if (isText && mimeType.startsWith('text/')) expect((await run()).mimeType).toBe(mimeType)
          else await expect(run()).rejects.toThrow(refused)
      }
    },
  )

  test('UPP-161 the source of an SVG image may be declared as the text that it is', async () => {
    const source = latin1('<svg></svg>')
    for (const mimeType of ['text/plain', 'text/xml', 'application/xml', 'image/svg+xml'])
      expect(Document.fromBase64(base64(source), mimeType).mimeType).toBe(mimeType)
    const path = await file('a.svg', source)
    const document = await Document.fromPath(path, 't', { mimeType: 'text/plain' })
    expect(document.source).toEqual({ type: 'text', data: '<svg></svg>' })
  })
})

describe('what only begins like a file', () => {
  const texts = [
    'BMW sold 2.45 million cars in the year.',
    'BM',
    'BM,1,2\nBN,3,4\n',
    'ID3 tags hold the title of a song.',
    'ID3,title\n',
    'ID3\t\n',
  ]
  test.each(texts)('UPP-073 UPP-161 %j is text', async (text) => {
    const bytes = latin1(text)
    for (const [name, mimeType] of [
      ['a.txt', 'text/plain'],
      ['a.csv', 'text/csv'],
      ['a.md', 'text/markdown'],
      ['a.json', 'application/json'],
    ] as const) {
      const told = await Document.fromPath(await file(name, bytes), 'T')
      const source = { type: 'text', data: text }
      expect(told.toBlock()).toEqual({ type: 'document', source, mimeType, title: 'T' })
      const declared = await Document.fromPath(await file('a', bytes), 'T', { mimeType })
      expect(declared.toBlock()).toEqual(told.toBlock())
      expect(Document.fromBase64(base64(bytes), mimeType).mimeType).toBe(mimeType)
    }
    expect(() => Image.fromBytes(bytes)).toThrow(refused)
    expect(() => Audio.fromBytes(bytes)).toThrow(refused)
  })

  test('UPP-073 UPP-161 text in UTF-16 is no sound', async () => {
    const text = Uint8Array.from(Buffer.from('\ufeffHello, world', 'utf16le'))
    expect(Document.fromBase64(base64(text), 'text/plain').mimeType).toBe('text/plain')
    await expect(Document.fromPath(await file('utf16.txt', text))).rejects.toThrow(/not UTF-8/)
    expect(() => Audio.fromBytes(text)).toThrow(refused)
  })

  test('UPP-074 UPP-161 raw samples may begin with any bytes', () => {
    const starts = [
      [0xff, 0xff, 0, 0],
      [0xff, 0xfb, 0x90, 0xfb],
      [0xff, 0xf1, 0x50, 0x80],
    ]
    for (let low = 0xe0; low <= 0xff; low += 1) starts.push([0xff, low, 0x44, 0])
    for (const start of starts) {
      const samples = Uint8Array.from([...start, 1, 0, 2, 0])
      for (const type of ['audio/pcm', 'audio/L16;rate=16000', 'audio/basic'])
        expect(Audio.fromBytes(samples, type).mimeType).toBe(type)
    }
    for (const silence of [
      [0xff, 0xff, 0, 0],
      [0xff, 0xfe, 0x48, 0],
      [0xff, 0xfb, 0, 0],
    ])
      expect(() => Audio.fromBytes(Uint8Array.from(silence))).toThrow(refused)
  })

  test.each([
    ['a version that does not exist', '\xff\xeb\x90\x64'],
    ['layer 0 outside of AAC', '\xff\xe1\x50\x80'],
    ['the bit rate 15', '\xff\xfb\xf0\x64'],
    ['a sample rate that AAC does not have', '\xff\xf1\x74\x80'],
    ['nothing but the first bits', '\xff\xfb'],
  ])('UPP-074 a frame with %s is none', (_, start) => {
    expect(() => Audio.fromBytes(latin1(start))).toThrow(refused)
    expect(Audio.fromBytes(latin1(start), 'audio/wav').mimeType).toBe('audio/wav')
  })
})

describe('images by address', () => {
  test.each(['a.pdf', 'a.txt', 'a.mp4', 'a.json', 'a.mp3'])(
    'UPP-161 UPP-072 …/%s is no image unless it is declared to be one',
    (name) => {
      const url = `https://x.test/${name}?x=.png`
      expect(() => Image.fromUrl(url)).toThrow(refused)
      expect(() => Image.fromUrl(url, 'application/pdf')).toThrow(refused)
      expect(Image.fromUrl(url, 'image/png').toBlock()).toEqual({
        type: 'image',
        source: { type: 'url', url },
        mimeType: 'image/png',
        metadata: undefined,
      })
    },
  )

  test.each([
    ['a.png', 'image/png'],
    ['a.JPG', 'image/jpeg'],
    ['a', 'image/*'],
    ['a.unknown', 'image/*'],
  ])('UPP-072 …/%s is %s', (name, mimeType) => {
    expect(Image.fromUrl(`https://x.test/${name}`).mimeType).toBe(mimeType)
    for (const wrong of ['text/plain', 'video/mp4', 'application/octet-stream', 'png', ''])
      expect(() => Image.fromUrl(`https://x.test/${name}`, wrong)).toThrow(refused)
  })
})

describe.runIf(process.platform === 'linux')('files without a size', () => {
  test.each([
    ['Image', (options: object) => Image.fromPath('/dev/zero', options)],
    ['Document', (options: object) => Document.fromPath('/dev/zero', 't', options)],
    ['Audio', (options: object) => Audio.fromPath('/dev/zero', options)],
    ['Video', (options: object) => Video.fromPath('/dev/zero', options)],
  ])('UPP-162 %s: a device that never ends is read up to the limit', async (_, read) => {
    for (const maxBytes of [1, 65_536, 100_000])
      await expect(read({ maxBytes })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringMatching(
          `^The file "/dev/zero" has at least \\d+ bytes; the limit is ${maxBytes}.$`,
        ),
      })
  })

  test('UPP-162 a file that reports no size is read whole', async () => {
    const mimeType = 'text/plain'
    const { source } = await Document.fromPath('/proc/self/status', 't', { mimeType })
    expect(source).toMatchObject({ type: 'text', data: expect.stringContaining('VmSize') })
    await expect(Document.fromPath('/dev/null', 't', { mimeType })).rejects.toThrow(/is empty/)
  })
})

test('UPP-162 a large file comes back byte for byte', async () => {
  const bytes = Uint8Array.from({ length: 200_001 }, (_, index) => index % 251)
  const path = await file('large.mp3', bytes)
  const { data } = await Audio.fromPath(path, { maxBytes: bytes.length })
  expect(Buffer.compare(data, bytes)).toBe(0)
  expect(Object.getPrototypeOf(data)).toBe(Uint8Array.prototype)
})
