/** Request bodies of every vendor and modality: what is sent unasked, and what the caller's `params` become. */
import { embedding, image, Image, llm, NoRetry, type Params, type ProviderConfig } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { operations, type Operation } from './support/operations.ts'
import { hello, png, stub, type Answer, type Seen } from './support/stub.ts'
import { imageVendors, vendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'
const dot = Image.fromBase64(png, 'image/png')

/** Runs an operation as `operations` does, with `params`; gives the request. */
async function send(
  { provider, modality, isStream }: Operation,
  params?: Params,
  answer?: Answer,
): Promise<Seen> {
  const { fetch, seen } = stub(answer)
  const config: ProviderConfig = { apiKey, fetch, retryStrategy: new NoRetry() }
  const options = { model: provider('m'), config, ...(params && { params }) }
  if (modality === 'embedding') await embedding(options).embed(['Hello'])
  else if (modality === 'image') {
    const model = image(options)
    await (isStream ? model.stream('A dot').result : model.generate('A dot'))
  } else await (isStream ? llm(options).stream('Hi').turn : llm(options).generate('Hi'))
  return seen[0]!
}

const bodyOf = ({ body }: Seen): JsonObject => JSON.parse(body) as JsonObject

/** The whole body of a call without params, by the end of its address. */
const bare: readonly (readonly [end: RegExp, body: (operation: Operation) => JsonObject])[] = [
  [/\/embeddings$|\/embed$/, () => ({ model: 'm', input: ['Hello'] })],
  [
    /:batchEmbedContents$/,
    () => ({ requests: [{ model: 'models/m', content: { parts: [{ text: 'Hello' }] } }] }),
  ],
  [
    /\/images\/generations$/,
    ({ isStream }) => ({ model: 'm', prompt: 'A dot', ...(isStream && { stream: true }) }),
  ],
  [/\/messages$/, ({ isStream }) => ({ ...chat(isStream), max_tokens: 4096 })],
  [/\/chat$/, ({ isStream }) => ({ ...chat(false), stream: isStream })],
  [
    /\/responses$/,
    ({ isStream }) => ({
      model: 'm',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
      ...(isStream && { stream: true }),
    }),
  ],
  [
    /\/chat\/completions$/,
    ({ modality, isStream, vendor }) =>
      modality === 'image'
        ? {
            model: 'm',
            messages: [{ role: 'user', content: [{ type: 'text', text: 'A dot' }] }],
            modalities: ['image', 'text'],
          }
        : {
            ...chat(isStream),
            // Mistral reports usage unasked and refuses the field.
            ...(isStream && vendor !== 'mistral' && { stream_options: { include_usage: true } }),
          },
  ],
  [/\/converse(-stream)?$/, () => ({ messages: [{ role: 'user', content: [{ text: 'Hi' }] }] })],
  [
    /[gG]enerateContent$/,
    ({ modality }) => ({
      contents: [{ role: 'user', parts: [{ text: modality === 'image' ? 'A dot' : 'Hi' }] }],
      ...(modality === 'image' && { generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }),
    }),
  ],
]

function chat(isStream: boolean): JsonObject {
  const content = 'Hi'
  return { model: 'm', messages: [{ role: 'user', content }], ...(isStream && { stream: true }) }
}

describe('without params', () => {
  test.each(operations)(
    'UPP-005 UPP-006 $name: the whole body is what the vendor needs',
    async (operation) => {
      const seen = await send(operation)
      const { pathname } = new URL(seen.url)
      const found = bare.filter(([end]) => end.test(pathname))
      expect(found).toHaveLength(1)
      // Anthropic's content is a list of blocks.
      const body = JSON.parse(
        seen.body.replace('"content":[{"type":"text","text":"Hi"}]', '"content":"Hi"'),
      ) as JsonObject
      expect(body).toEqual(found[0]![1](operation))
    },
  )
})

describe('params', () => {
  test.each(operations)(
    'UPP-004 $name: false, 0, an empty text and null are sent like any other value',
    async (operation) => {
      const params = {
        x_false: false,
        x_zero: 0,
        x_empty: '',
        x_null: null,
        seed: 0,
        logprobs: false,
      }
      const { body } = await send(operation, params)
      for (const [name, value] of Object.entries(params))
        expect(body).toContain(`"${name}":${JSON.stringify(value)}`)
    },
  )

  /** Fields that decide how the answer is read, so that the caller cannot set them. */
  const imposed = new Set(['stream'])

  test.each(operations)(
    'UPP-004 $name: a parameter that is named like one of our fields replaces it',
    async (operation) => {
      const first = await send(operation)
      const fields = bodyOf(first)
      const inner = (fields['requests'] as JsonObject[] | undefined)?.[0]
      const names = Object.keys(inner ?? fields).filter((name) => !imposed.has(name))
      expect(names.length).toBeGreaterThan(0)
      for (const name of names) {
        const own = { own: [name] }
        // The answer is that to the first request, whatever the second one asks for.
        const body = bodyOf(await send(operation, { [name]: own }, () => hello(first)))
        const sent = (inner ? (body['requests'] as JsonObject[])[0]! : body)[name]
        expect([name, sent]).toEqual([name, expect.objectContaining(own)])
      }
    },
  )

  test.each(operations)('UPP-004 $name: stay as the caller made them', async (operation) => {
    const params = { tools: [], x_list: [{ deep: {} }], generationConfig: { topK: 1 } }
    const before = structuredClone(params)
    await send(operation, params)
    expect(params).toEqual(before)
    expect([params, params.x_list, params.x_list[0], params.generationConfig].some(Object.isFrozen)) //
      .toBe(false)
  })
})

describe('images', () => {
  test.each(
    imageVendors.filter(({ provider }) => image({ model: provider('m') }).capabilities.edit),
  )(
    'UPP-004 $name: every parameter of an edit is sent, whatever its type',
    async ({ provider }) => {
      const params = {
        text: 'a',
        empty: '',
        none: 0,
        no: false,
        list: [1, 'b'],
        object: { deep: [null] },
        nothing: null,
      }
      let sent: BodyInit | null | undefined
      const config: ProviderConfig = {
        apiKey,
        fetch: async (url, init) => {
          sent = init.body
          return hello({ url, body: typeof sent === 'string' ? sent : '' })
        },
      }
      await image({ model: provider('m'), config, params }).edit({ prompt: 'Bluer', image: dot })
      const fields =
        sent instanceof FormData
          ? Object.keys(params).map((name) => [name, (sent as FormData).getAll(name)])
          : Object.entries(JSON.parse(String(sent)) as object)
      const written = ([name, value]: [string, unknown]): [string, unknown] =>
        sent instanceof FormData
          ? [name, [typeof value === 'string' ? value : JSON.stringify(value)]]
          : [name, value]
      expect(fields).toEqual(expect.arrayContaining(Object.entries(params).map(written)))
    },
  )

  test('UPP-004 Imagen: parameters are sent as they are, also those that Gemini has in generationConfig', async () => {
    const { fetch, seen } = stub()
    const params = { sampleCount: 2, seed: 7, temperature: 0.5, generationConfig: { topK: 1 } }
    const { provider } = vendors.find(({ name }) => name === 'google')!
    await image({ model: provider('imagen-4'), config: { apiKey, fetch }, params }).generate(
      'A dot',
    )
    expect(bodyOf(seen[0]!)).toEqual({ instances: [{ prompt: 'A dot' }], parameters: params })
  })

  test.each(imageVendors)(
    'UPP-007 $name: generate makes an image and edits none, whatever its input has',
    async ({ provider }) => {
      const { fetch, seen } = stub()
      const model = image({ model: provider('m'), config: { apiKey, fetch } })
      await model.generate('A dot')
      await model.generate({ prompt: 'A dot', image: dot, images: [dot], mask: dot } as object as {
        prompt: string
      })
      const [first, second] = seen.map(({ url, body }) => ({ url, body }))
      expect(second).toEqual(first)
    },
  )
})
