import { expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { isUPPError } from '../contract/error.ts'
import { image } from '../image.ts'
import { llm } from '../llm.ts'
import { Audio, Video } from './byte-media.ts'
import { Image } from './image.ts'
import { Document } from './document.ts'
import { NoRetry } from '../transport/retry.ts'
import { google } from '../vendors/google.ts'
import { openai } from '../vendors/openai.ts'
import { openrouter } from '../vendors/openrouter.ts'

/** 67 bytes, so that there is padding to leave out, and digits that differ in the URL alphabet. */
const bytes = Uint8Array.from({ length: 67 }, (_, i) =>
  i < 8 ? [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10][i]! : 0xf8 | (i % 8),
)
const strict = Buffer.from(bytes).toString('base64')

/** The same data as it is found in the wild. */
const written = {
  'as the standard has it': strict,
  'without padding': strict.replace(/=+$/, ''),
  'in lines': strict.replace(/.{20}/g, '$&\r\n'),
  'for addresses': Buffer.from(bytes).toString('base64url'),
  'as a data URL': `data:image/png;base64,${strict}`,
}

const answering = (body: object) => ({
  apiKey: 'key-0123456789',
  fetch: async () => Response.json(body),
  retryStrategy: new NoRetry(),
})

test.each(Object.entries(written))('media of vendors written %s are read', async (_, data) => {
  const parts = [{ inlineData: { mimeType: 'image/png', data } }]
  const gemini = answering({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
  const item = { type: 'image_generation_call', id: 'i', result: data }
  const responses = answering({ id: 'r', status: 'completed', output: [item] })
  const url = data.startsWith('data:') ? data : `data:image/png;base64,${data}`
  const message = { content: null, images: [{ image_url: { url } }], audio: { id: 'a', data } }
  const chat = answering({ choices: [{ message, finish_reason: 'stop' }] })

  const turns = await Promise.all([
    llm({ model: google('m'), config: gemini }).generate('Paint.'),
    llm({ model: openai('m'), config: responses }).generate('Paint.'),
    llm({ model: openrouter('m'), config: chat }).generate('Paint.'),
  ])

  for (const { response } of turns)
    expect(response.images[0]?.source).toEqual({ type: 'bytes', data: bytes })
  expect(turns[2]?.response.audio[0]?.data).toEqual(bytes)
})

test.each(Object.entries(written))('images and vectors written %s are read', async (_, data) => {
  const painter = image({
    model: openai('gpt-image-1'),
    config: answering({ data: [{ b64_json: data }] }),
  })
  const made = (await painter.generate('A cat')).images[0]!.image
  expect(made.toBytes()).toEqual(bytes)
  expect(made.toBase64()).toBe(strict)
  expect(made.mimeType).toBe('image/png')

  const floats = Buffer.from(new Float32Array([1, -2.5]).buffer).toString('base64')
  const vector = data === written['without padding'] ? floats.replace(/=+$/, '') : `${floats}\n`
  const config = answering({ data: [{ index: 0, embedding: vector }] })
  const { embeddings } = await embedding({ model: openai('e'), config }).embed('a')
  expect(embeddings[0]?.vector).toEqual([1, -2.5])
})

test.each(Object.entries(written))(
  'helpers take data written %s and pass on the strict form',
  (_, data) => {
    expect(Image.fromBase64(data, 'image/png').source).toEqual({ type: 'base64', data: strict })
    expect(Image.fromBase64(data).toBytes()).toEqual(bytes)
    expect(Document.fromBase64(data, 'image/png').source).toEqual({ type: 'base64', data: strict })
    expect(Audio.fromBase64(Buffer.from('RIFF0000WAVE').toString('base64url')).data).toHaveLength(
      12,
    )
  },
)

test('UPP-030 data that is no base64 is refused with a UPPError', () => {
  const wrong = 'not base64!'
  for (const make of [
    () => Image.fromBase64(wrong, 'image/png'),
    () => Audio.fromBase64(wrong, 'audio/wav'),
    () => Video.fromBase64(wrong, 'video/mp4'),
    () => Document.fromBase64(wrong, 'application/pdf'),
    () =>
      Image.fromBlock({
        type: 'image',
        source: { type: 'base64', data: wrong },
        mimeType: 'image/png',
      }).toBytes(),
  ]) {
    let error: unknown
    try {
      make()
    } catch (thrown) {
      error = thrown
    }
    expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
  }
})
