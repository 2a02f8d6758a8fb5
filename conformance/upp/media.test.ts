/** Helpers and messages, form by form: what each keeps of what it was given. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  AssistantMessage,
  Audio,
  Document,
  Image,
  isAssistantMessage,
  isToolResultMessage,
  isUserMessage,
  messageFromJSON,
  messageToJSON,
  ToolResultMessage,
  UserMessage,
  Video,
  type UserContent,
} from '@skein/ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const pdf = new TextEncoder().encode('%PDF-1.7\n')
const wav = new TextEncoder().encode('RIFF\x24\0\0\0WAVEfmt ')
const unknown = Uint8Array.of(1, 2, 3)
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skein-helpers-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function file(name: string, data: Uint8Array | string): Promise<string> {
  await writeFile(join(folder, name), data)
  return join(folder, name)
}

describe('files', () => {
  type Read = (
    path: string,
    options?: { mimeType?: string; maxBytes?: number },
  ) => Promise<{ readonly mimeType: string }>
  const readers: readonly [string, string, Read][] = [
    ['UPP-072 Image', 'image/avif', (path, options) => Image.fromPath(path, options)],
    ['UPP-073 Document', 'text/csv', (path, options) => Document.fromPath(path, 'T', options)],
    ['UPP-074 Audio', 'audio/flac', (path, options) => Audio.fromPath(path, options)],
    ['UPP-075 Video', 'video/quicktime', (path, options) => Video.fromPath(path, options)],
  ]
  const endings: Readonly<Record<string, string>> = {
    'image/avif': 'avif',
    'text/csv': 'csv',
    'audio/flac': 'flac',
    'video/quicktime': 'MOV',
  }

  test.each(readers)(
    '%s: the type is the given one, else that of the name',
    async (_, type, read) => {
      const path = await file(`some.${endings[type]}`, unknown)
      expect((await read(path)).mimeType).toBe(type)
      const own = `${type.split('/')[0]}/x-own`
      expect((await read(path, { mimeType: own })).mimeType).toBe(own)
      await expect(read(await file('nameless', unknown))).rejects.toMatchObject({ code: 'INVALID_REQUEST' }) // prettier-ignore
    },
  )

  test.each(readers)(
    '%s: a file of maxBytes is read, a longer one is refused',
    async (_, type, read) => {
      const path = await file(`long.${endings[type]}`, unknown)
      expect((await read(path, { maxBytes: 3 })).mimeType).toBe(type)
      for (const mimeType of [undefined, type])
        await expect(
          read(path, { maxBytes: 2, ...(mimeType && { mimeType }) }),
        ).rejects.toMatchObject({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining('the limit is 2'),
        })
    },
  )

  test('UPP-072 UPP-073 the bytes tell the type before the name does', async () => {
    expect((await Image.fromPath(await file('a.jpg', png))).mimeType).toBe('image/png')
    const paper = await Document.fromPath(await file('a.txt', pdf), 'T')
    expect(paper.toBlock()).toEqual({
      type: 'document',
      source: { type: 'base64', data: base64(pdf) },
      mimeType: 'application/pdf',
      title: 'T',
    })
  })

  test.each([
    ['json', '{"a":1}', 'application/json'],
    ['html', '<p>é</p>', 'text/html'],
    ['md', '# é', 'text/markdown'],
  ])('UPP-073 a .%s file is kept as text, with its title', async (ending, text, mimeType) => {
    const document = await Document.fromPath(await file(`a.${ending}`, text), 'Title')
    const source = { type: 'text', data: text }
    expect(document.toBlock()).toEqual({ type: 'document', source, mimeType, title: 'Title' })
    const untitled = await Document.fromPath(await file(`b.${ending}`, text))
    expect('title' in untitled).toBe(false)
  })
})

describe('data', () => {
  const urlSafe = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xfb, 0xef, 0xff)
  const forms = [
    base64(urlSafe),
    base64(urlSafe).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''),
    `data:image/png;base64,${base64(urlSafe)}`,
    base64(urlSafe).replace(/(.{4})/g, '$1\r\n'),
  ]

  test.each(forms)('UPP-072 UPP-071 %j is kept as the base64 that vendors take', (given) => {
    const source = { type: 'base64', data: base64(urlSafe) }
    expect(Image.fromBase64(given).toBlock()).toMatchObject({ source, mimeType: 'image/png' })
    expect(Document.fromBase64(given, 'image/png').source).toEqual(source)
    expect(Image.fromBase64(given).toBytes()).toEqual(urlSafe)
  })

  test('UPP-074 UPP-075 UPP-072 a declared type that the data contradicts is refused in every form', () => {
    const refused = expect.objectContaining({ code: 'INVALID_REQUEST' })
    expect(() => Audio.fromBase64(base64(wav), 'audio/mpeg')).toThrow(refused)
    expect(() => Audio.fromBytes(wav, 'audio/mpeg')).toThrow(refused)
    expect(() => Video.fromBase64(base64(wav), 'video/mp4')).toThrow(refused)
    expect(() => Image.fromBase64(base64(png), 'image/jpeg')).toThrow(refused)
    expect(() => Document.fromBase64(base64(pdf), 'text/plain')).toThrow(refused)
  })

  test.each(['audio/mp4', 'audio/ogg', 'audio/webm', 'audio/x-own', 'image/png', 'text/plain'])(
    'UPP-075 %s is no type of a video',
    (mimeType) => {
      const refused = expect.objectContaining({ code: 'INVALID_REQUEST' })
      expect(() => Video.fromBytes(unknown, mimeType)).toThrow(refused)
      expect(() => Image.fromBytes(unknown, mimeType.replace('image', 'audio'))).toThrow(refused)
    },
  )

  test.each(['video/mp4', 'video/ogg', 'video/webm'])('UPP-074 %s may hold sound alone', (type) => {
    expect(Audio.fromBytes(unknown, type).toBlock()).toEqual({
      type: 'audio',
      data: unknown,
      mimeType: type,
    })
  })

  test('UPP-072 UPP-069 an image made from a block has all of it', () => {
    const metadata = { openai: { detail: 'low' } }
    for (const source of [
      { type: 'bytes', data: png },
      { type: 'base64', data: base64(png) },
      { type: 'url', url: 'https://x.test/a.png' },
    ] as const) {
      const block = { type: 'image', source, mimeType: 'image/png', metadata } as const
      expect(Image.fromBlock(block).toBlock()).toEqual(block)
      expect(new UserMessage([Image.fromBlock(block)]).images).toMatchObject([block])
    }
  })
})

describe('messages', () => {
  test('UPP-063 id and time come from the given sources, unless they are given themselves', () => {
    const sources = { ids: () => 'made', clock: { now: () => 7 } }
    const given = { ...sources, id: 'own', timestamp: new Date(0) }
    for (const make of [
      (options: object) => new UserMessage('a', options),
      (options: object) => new AssistantMessage('a', undefined, options),
      (options: object) => new ToolResultMessage([], options),
    ]) {
      const [made, own] = [make(sources), make(given)]
      expect([made.id, made.timestamp.getTime()]).toEqual(['made', 7])
      expect([own.id, own.timestamp.getTime()]).toEqual(['own', 0])
    }
  })

  test('UPP-066 UPP-067 UPP-068 a message copies the caller’s lists, which stay the caller’s', () => {
    const content: UserContent[] = [{ type: 'text', text: 'a' }]
    const calls = [{ toolCallId: 'c', toolName: 't', arguments: {} }]
    const results = [{ toolCallId: 'c', result: 1 }]
    const user = new UserMessage(content)
    const assistant = new AssistantMessage([{ type: 'text', text: 'a' }], calls)
    const answer = new ToolResultMessage(results)
    for (const list of [content, calls, results]) {
      expect(Object.isFrozen(list)).toBe(false)
      list.length = 0
    }
    expect([user.text, assistant.toolCalls?.length, answer.results.length]).toEqual(['a', 1, 1])
  })

  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', '', undefined, 7])(
    'UPP-066 UPP-070 %j is no type of a block',
    (type) => {
      const block = { type } as unknown as { type: 'text'; text: string }
      const refused = expect.objectContaining({ code: 'INVALID_REQUEST' })
      expect(() => new UserMessage([block])).toThrow(refused)
      expect(() => new AssistantMessage([block])).toThrow(refused)
    },
  )

  test.each(['binary', 'document'])('UPP-070 UPP-067 an assistant says no %s', (type) => {
    const source = { type: 'text', data: 'd' }
    const block = { type, data: unknown, source, mimeType: 'text/plain' } as never
    expect(() => new AssistantMessage([block])).toThrow(/document|binary/)
    expect(() =>
      messageFromJSON({ ...messageToJSON(new AssistantMessage('a')), content: [block] }),
    ).toThrow(/document|binary/)
  })

  test('UPP-065 the accessors look at all results of a message', () => {
    const of = (type: string, name: string): object => ({ type, name })
    const results = [
      { toolCallId: 'a', result: of('image', '1') },
      { toolCallId: 'b', result: { plain: true } },
      { toolCallId: 'c', result: [of('audio', '2'), of('video', '3'), of('image', '4')] },
      { toolCallId: 'd', result: of('document', '5') },
    ]
    const { images, audio, video, documents } = new ToolResultMessage(results)
    const names = [images, audio, video, documents].map((list) =>
      list.map((block) => (block as unknown as { name: string }).name),
    )
    expect(names).toEqual([['1', '4'], ['2'], ['3'], ['5']])
  })

  test('UPP-065 documents of every source are listed', () => {
    const sources = [{ type: 'url', url: 'https://x.test/a' }, { type: 'text', data: 'a' }, { type: 'base64', data: 'YQ==' }] as const // prettier-ignore
    const blocks = sources.map((source) => ({ type: 'document', source, mimeType: 'text/plain' }) as const) // prettier-ignore
    expect(new UserMessage(blocks).documents).toEqual(blocks)
  })

  test('UPP-062 UPP-068 metadata and every field of a result survive JSON in each kind of message', () => {
    const metadata = { vendor: { list: [1, { a: null }] }, other: { x: '' } }
    const call = { toolCallId: 'c', toolName: 't', arguments: { a: 1 }, metadata }
    const result = { toolCallId: 'c', toolName: 't', result: { a: [1] }, isError: true, metadata }
    const block = { type: 'text', text: 'a', metadata } as const
    for (const message of [
      new UserMessage([block], { metadata }),
      new AssistantMessage([block], [call], { metadata }),
      new ToolResultMessage([result, { toolCallId: 'd', result: null }], { metadata }),
    ]) {
      const again = messageFromJSON(JSON.parse(JSON.stringify(messageToJSON(message))))
      expect(again).toEqual(message)
      expect(Object.isFrozen(again.metadata?.['vendor']?.['list'])).toBe(true)
    }
  })

  test('UPP-068 UPP-069 a field that is missing or of the wrong type is named', () => {
    const read = (type: string, fields: object) => () =>
      messageFromJSON({ id: 'm', type, timestamp: new Date(0).toISOString(), ...fields })
    for (const toolCallId of [undefined, 7, null])
      expect(read('tool_result', { results: [{ toolCallId, result: 1 }] })).toThrow(/results\[0\]\.toolCallId/) // prettier-ignore
    for (const type of ['text', 'reasoning'])
      expect(read('assistant', { content: [{ type }] })).toThrow(/content\[0\]\.text/)
  })

  test('UPP-076 a vendor’s { role } is no message', () => {
    for (const role of ['user', 'assistant', 'tool_result', 'tool']) {
      const foreign = { role, content: 'hi' }
      expect([isUserMessage, isAssistantMessage, isToolResultMessage].map((is) => is(foreign))) //
        .toEqual([false, false, false])
    }
  })
})
