/** Documents, images and audio in requests: each source, for each vendor that takes it. */
import type { JsonObject } from '@skein/base'
import {
  Audio,
  Document,
  Image,
  UserMessage,
  type ModelReference,
  type UserContent,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { openrouter } from '@skein/ai/openrouter'
import { describe, expect, test } from 'vitest'
import { lastOf, sentBody } from './support/sent-body.ts'
import { png } from './support/stub.ts'

const chat = openaiCompatible({ name: 'local', baseUrl: 'https://x.test/v1' })
const responses = openai('m')
const say = (content: readonly UserContent[]): UserMessage[] => [new UserMessage(content)]

describe('documents, images and audio', () => {
  const named = Document.fromText('Dear reader', 'Letter')
  const paper = Document.fromUrl('https://x.test/a.pdf', 'Paper')
  const data = Document.fromBase64('JVBERi0x', 'application/pdf', 'a.pdf')
  const uri = 'data:application/pdf;base64,JVBERi0x'

  test.each<[string, ModelReference, Document, JsonObject]>([
    ['Chat Completions', chat('m'), named, { type: 'text', text: 'Letter\n\nDear reader' }],
    ['Responses', responses, named, { type: 'input_text', text: 'Letter\n\nDear reader' }],
    [
      'Anthropic',
      anthropic('m'),
      named,
      {
        type: 'document',
        title: 'Letter',
        source: { type: 'text', media_type: 'text/plain', data: 'Dear reader' },
      },
    ],
    [
      'Responses',
      responses,
      paper,
      { type: 'input_file', file_url: 'https://x.test/a.pdf', filename: 'Paper' },
    ],
    [
      'Anthropic',
      anthropic('m'),
      paper,
      { type: 'document', title: 'Paper', source: { type: 'url', url: 'https://x.test/a.pdf' } },
    ],
    [
      'Mistral',
      mistral('m'),
      paper,
      { type: 'document_url', document_url: 'https://x.test/a.pdf', document_name: 'Paper' },
    ],
    [
      'OpenRouter',
      openrouter('m'),
      paper,
      { type: 'file', file: { filename: 'Paper', file_data: 'https://x.test/a.pdf' } },
    ],
    [
      'Chat Completions',
      chat('m'),
      data,
      { type: 'file', file: { filename: 'a.pdf', file_data: uri } },
    ],
    [
      'Mistral',
      mistral('m'),
      data,
      { type: 'document_url', document_url: uri, document_name: 'a.pdf' },
    ],
    [
      'OpenRouter',
      openrouter('m'),
      data,
      { type: 'file', file: { filename: 'a.pdf', file_data: uri } },
    ],
    ['Responses', responses, data, { type: 'input_file', filename: 'a.pdf', file_data: uri }],
    [
      'Anthropic',
      anthropic('m'),
      data,
      {
        type: 'document',
        title: 'a.pdf',
        source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' },
      },
    ],
  ])('UPP-071 UPP-057 %s: %#', async (_name, model, document, expected) => {
    // prettier-ignore
    const [, part] = lastOf(await sentBody(model, say([{ type: 'text', text: 'Read' }, document])))['content'] as JsonObject[] // prettier-ignore
    expect(part).toEqual(expected)
  })

  test.each([
    ['text/plain', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
    ['text/markdown', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
    ['text/csv', 'SGVsbG8=', { type: 'text', media_type: 'text/plain', data: 'Hello' }],
  ])('UPP-071 Anthropic: %s in base64 is sent as text', async (mimeType, base64, source) => {
    const [part] = lastOf(await sentBody(anthropic('m'), say([Document.fromBase64(base64, mimeType)])))['content'] as JsonObject[] // prettier-ignore
    expect(part!['source']).toEqual(source)
  })

  test('UPP-071 Google: a text is sent as a file of its type', async () => {
    const source = { type: 'text', data: 'a,b' } as const
    const csv = { type: 'document', source, mimeType: 'text/csv' } as const
    const { parts } = lastOf(await sentBody(google('m'), say([csv])))
    expect(parts).toEqual([{ inlineData: { mimeType: 'text/csv', data: 'YSxi' } }])
  })

  const wav = Uint8Array.from('RIFF\0\0\0\0WAVEfmt ', (letter) => letter.charCodeAt(0))
  const mp3 = Uint8Array.of(0x49, 0x44, 0x33, 4)

  test.each([
    [Audio.fromBytes(wav), 'wav'],
    [Audio.fromBytes(mp3), 'mp3'],
  ])(
    'UPP-071 audio, %#: Mistral takes the data alone, others data and format',
    async (audio, format) => {
      const data = audio.toBase64()
      const input = async (model: ModelReference): Promise<unknown> =>
        (lastOf(await sentBody(model, say([audio])))['content'] as JsonObject[])[0]
      expect(await input(mistral('m'))).toEqual({ type: 'input_audio', input_audio: data })
      expect(await input(chat('m'))).toEqual({ type: 'input_audio', input_audio: { data, format } })
    },
  )

  test('UPP-071 a data address of an image is sent as data of the type that it names', async () => {
    const source = { type: 'url', url: `data:image/webp;base64,${png}` } as const
    const block = { type: 'image', source, mimeType: 'image/*' } as const
    const { parts } = lastOf(await sentBody(google('m'), say([block])))
    expect(parts).toEqual([{ inlineData: { mimeType: 'image/webp', data: png } }])
    const { content } = lastOf(await sentBody(anthropic('m'), say([block])))
    expect(content).toMatchObject([{ source: { type: 'base64', media_type: 'image/webp', data: png } }]) // prettier-ignore
  })

  test('UPP-057 Ollama: every image of a message is sent', async () => {
    const dot = Image.fromBase64(png)
    const message = lastOf(
      await sentBody(ollama('m'), say([{ type: 'text', text: 'Two' }, dot, dot])),
    )
    expect(message).toEqual({ role: 'user', content: 'Two', images: [png, png] })
  })
})
