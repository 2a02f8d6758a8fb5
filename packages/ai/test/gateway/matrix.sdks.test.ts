/** The newest clients of three vendors, each in front of models of every vendor format. */
import { image, NoRetry, type ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel, type Gateway } from '@skein/ai/gateway'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import {
  calls,
  fails,
  reasons,
  says,
  type ScriptFunction,
  type ScriptStep,
  vendorServer,
  type VendorServer,
  waits,
} from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { beforeAll, describe, expect, test } from 'vitest'
import { peersOf } from '../../../../scripts/peers.ts'
import { type FetchServer, serveFetch } from './serve-fetch.ts'

const peers = peersOf('sdks')

const vendors: Readonly<Record<string, ModelReference>> = {
  'anthropic messages': anthropic('claude-sonnet-4-5'),
  'openai responses': openai('gpt-5'),
  'openai chat': openai('gpt-4o', { api: 'chat' }),
  google: google('gemini-2.5-flash'),
  ollama: ollama('llava'),
}
const prefixes: Readonly<Record<string, string>> = { google: '/v1beta', ollama: '/api' }

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==' // prettier-ignore
const pdf = 'JVBERi0xLjQKJSVFT0YK'
const schema = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}
const weather = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

/** What a client got, however its SDK names it. */
interface Answer {
  readonly text: string
  readonly thinking?: string
  readonly call?: { readonly id: string; readonly name: string; readonly args: unknown }
  readonly tokens?: number
  /** The answer as the client sends it back. */
  readonly history: readonly unknown[]
}

interface Ask {
  readonly text?: string
  readonly picture?: boolean
  readonly pdf?: boolean
  readonly tools?: boolean
  readonly structure?: boolean
  readonly stream?: boolean
  readonly signal?: AbortSignal
  /** An earlier answer with a call, to be sent back with its result. */
  readonly after?: Answer
}

/** One SDK in one of its formats. */
interface Client {
  ask(url: string, ask: Ask): Promise<Answer>
  status(error: unknown): unknown
}

/** The SDKs are installed apart from the workspace, so their types are not known here. */
type Loose = any // oxlint-disable-line no-explicit-any

let sdks: { OpenAI: Loose; Anthropic: Loose; GoogleGenAI: Loose }
beforeAll(async () => {
  if (!peers.isInstalled) return
  const { default: OpenAI } = await peers.load<Loose>('openai')
  const { default: Anthropic } = await peers.load<Loose>('@anthropic-ai/sdk')
  const { GoogleGenAI } = await peers.load<Loose>('@google/genai')
  sdks = { OpenAI, Anthropic, GoogleGenAI }
})

const parse = (text: string): unknown => JSON.parse(text || '{}')

const clients: Readonly<Record<string, Client>> = {
  'openai chat': {
    status: (error) => (error as { status: unknown }).status,
    async ask(url, { text = 'Hi', picture, pdf: isPdf, tools, structure, stream, signal, after }) {
      const client = new sdks.OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
      const image_url = { url: `data:image/png;base64,${png}` }
      const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }
      const parts = [...(picture ? [{ type: 'image_url', image_url }] : []), ...(isPdf ? [{ type: 'file', file }] : [])] // prettier-ignore
      const content = parts.length > 0 ? [{ type: 'text', text }, ...parts] : text
      const result = { role: 'tool', tool_call_id: after?.call?.id, content: 'rain' }
      const body = {
        model: 'm',
        max_completion_tokens: 9000,
        messages: [{ role: 'user', content }, ...(after ? [...after.history, result] : [])],
        ...(tools && { tools: [{ type: 'function', function: { name: 'weather', parameters: weather } }] }), // prettier-ignore
        ...(structure && { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }), // prettier-ignore
      }
      const options = { signal }
      let thinking = ''
      const streamed = async () => {
        const chunks = client.chat.completions.stream(
          { ...body, stream_options: { include_usage: true } },
          options,
        )
        // The SDK joins the fields that it knows; this one is of other vendors.
        chunks.on('chunk', ({ choices }: Loose) => (thinking += choices[0]?.delta.reasoning_content ?? '')) // prettier-ignore
        return chunks.finalChatCompletion()
      }
      const completion = stream
        ? await streamed()
        : await client.chat.completions.create(body, options)
      const { message } = completion.choices[0]
      const [call] = message.tool_calls ?? []
      return {
        text: message.content ?? '',
        thinking: stream ? thinking : message.reasoning_content,
        call: call && { id: call.id, name: call.function.name, args: parse(call.function.arguments) }, // prettier-ignore
        tokens: completion.usage?.total_tokens,
        history: [message],
      }
    },
  },
  'openai responses': {
    status: (error) => (error as { status: unknown }).status,
    async ask(url, { text = 'Hi', picture, pdf: isPdf, tools, structure, stream, signal, after }) {
      const client = new sdks.OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 })
      const image_url = `data:image/png;base64,${png}`
      const content = [{ type: 'input_text', text }, ...(picture ? [{ type: 'input_image', image_url }] : []), ...(isPdf ? [{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }] : [])] // prettier-ignore
      const result = { type: 'function_call_output', call_id: after?.call?.id, output: 'rain' }
      const body = {
        model: 'm',
        max_output_tokens: 9000,
        input: [{ role: 'user', content }, ...(after ? [...after.history, result] : [])],
        ...(tools && { tools: [{ type: 'function', name: 'weather', parameters: weather }] }),
        ...(structure && { text: { format: { type: 'json_schema', name: 'x', schema } } }),
      }
      const response = stream
        ? await client.responses.stream(body, { signal }).finalResponse()
        : await client.responses.create(body, { signal })
      const call = response.output.find((item: Loose) => item.type === 'function_call')
      const reasoning = response.output.find((item: Loose) => item.type === 'reasoning')
      return {
        text: response.output_text,
        thinking: reasoning?.summary[0]?.text,
        call: call && { id: call.call_id, name: call.name, args: parse(call.arguments) },
        tokens: response.usage?.total_tokens,
        history: response.output.map((item: Loose) => ({ ...item, parsed_arguments: undefined })),
      }
    },
  },
  'anthropic messages': {
    status: (error) => (error as { status: unknown }).status,
    async ask(url, { text = 'Hi', picture, pdf: isPdf, tools, structure, stream, signal, after }) {
      const client = new sdks.Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 0 })
      const source = { type: 'base64', media_type: 'image/png', data: png }
      const page = { type: 'base64', media_type: 'application/pdf', data: pdf }
      const blocks = [...(picture ? [{ type: 'image', source }] : []), ...(isPdf ? [{ type: 'document', source: page }] : [])] // prettier-ignore
      const content = blocks.length > 0 ? [{ type: 'text', text }, ...blocks] : text
      const result = { type: 'tool_result', tool_use_id: after?.call?.id, content: 'rain' }
      const body = {
        model: 'm',
        max_tokens: 9000,
        messages: [
          { role: 'user', content },
          ...(after
            ? [
                { role: 'assistant', content: after.history },
                { role: 'user', content: [result] },
              ]
            : []),
        ],
        ...(tools && { tools: [{ name: 'weather', input_schema: weather }] }),
        ...(structure && { output_config: { format: { type: 'json_schema', schema } } }),
      }
      const message = stream
        ? await client.messages.stream(body, { signal }).finalMessage()
        : await client.messages.create(body, { signal })
      const block = (type: string) => message.content.find((one: Loose) => one.type === type)
      const call = block('tool_use')
      return {
        text: block('text')?.text ?? '',
        thinking: block('thinking')?.thinking,
        call: call && { id: call.id, name: call.name, args: call.input },
        tokens: message.usage.input_tokens + message.usage.output_tokens,
        history: message.content,
      }
    },
  },
  'google generate': {
    status: (error) => (error as { status: unknown }).status,
    async ask(url, { text = 'Hi', picture, pdf: isPdf, tools, structure, stream, signal, after }) {
      const client = new sdks.GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } })
      const inlineData = { mimeType: 'image/png', data: png }
      const { id, name } = after?.call ?? {}
      const functionResponse = { id, name, response: { output: 'rain' } }
      const request = {
        model: 'm',
        contents: [
          { role: 'user', parts: [{ text }, ...(picture ? [{ inlineData }] : []), ...(isPdf ? [{ inlineData: { mimeType: 'application/pdf', data: pdf } }] : [])] }, // prettier-ignore
          ...(after
            ? [
                { role: 'model', parts: after.history },
                { role: 'user', parts: [{ functionResponse }] },
              ]
            : []),
        ],
        config: {
          abortSignal: signal,
          maxOutputTokens: 9000,
          ...(tools && { tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: weather }] }] }), // prettier-ignore
          ...(structure && { responseMimeType: 'application/json', responseJsonSchema: schema }),
        },
      }
      const chunks: Loose[] = []
      if (stream) {
        for await (const chunk of await client.models.generateContentStream(request)) chunks.push(chunk) // prettier-ignore
      } else chunks.push(await client.models.generateContent(request))
      const parts = chunks.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? [])
      const textOf = (isThought: boolean) =>
        parts
          .filter((part) => part.text !== undefined && (part.thought === true) === isThought)
          .map((part) => part.text)
          .join('')
      const call = parts.find((part) => part.functionCall)?.functionCall
      return {
        text: textOf(false),
        thinking: textOf(true),
        call: call && { id: call.id, name: call.name, args: call.args },
        tokens: chunks.at(-1)?.usageMetadata?.totalTokenCount,
        history: parts,
      }
    },
  },
}

const pairs = Object.keys(clients).flatMap((client) =>
  Object.keys(vendors).map((vendor) => ({ client, vendor })),
)

interface ServedVendor {
  readonly vendor: VendorServer
  readonly url: string
}

describe.runIf(peers.isInstalled).each(pairs)('$client client, $vendor model', (pair) => {
  const { ask, status } = clients[pair.client]!

  /** Serves the model from a scripted vendor, behind a socket. */
  async function served(
    script: readonly ScriptStep[] | ScriptFunction,
    run: (served: ServedVendor) => Promise<void>,
  ): Promise<void> {
    const vendor = vendorServer(script)
    const baseUrl = `http://vendor.test${prefixes[pair.vendor] ?? '/v1'}`
    const retryStrategy = new NoRetry()
    const config = { apiKey: 'k', fetch: vendor.fetch, baseUrl, retryStrategy }
    const handler: Gateway = gateway({
      models: { m: servedModel({ model: vendors[pair.vendor]!, config }) },
    })
    await using server: FetchServer = await serveFetch(handler)
    await run({ vendor, url: server.url })
  }

  test('text, whole and streamed', async () => {
    await served(
      () => says('Hello there.'),
      async ({ vendor, url }) => {
        for (const stream of [false, true]) {
          const answer = await ask(url, { stream })
          expect(answer.text).toBe('Hello there.')
          expect(answer.tokens).toBeGreaterThan(0)
        }
        expect(JSON.stringify(vendor.requests[0]!.body)).toContain('9000')
      },
    )
  })

  test('thinking and tools, with the answer sent back', async () => {
    for (const stream of [false, true])
      await served(
        [[reasons('I must look.'), calls('weather', { city: 'Oslo' })], says('Rain.')],
        async ({ vendor, url }) => {
          const first = await ask(url, { tools: true, stream })
          expect(first.thinking).toBe('I must look.')
          expect(first.call).toMatchObject({ name: 'weather', args: { city: 'Oslo' } })
          const second = await ask(url, { tools: true, stream, after: first })
          expect(second.text).toBe('Rain.')
          const history = vendor.model.requests[1]!.messages
          expect(history.map(({ type }) => type)).toEqual(['user', 'assistant', 'tool_result'])
          // A vendor that signs its thinking gets it back, if the client's format has a place for a signature.
          const signs = ['anthropic messages', 'openai responses'].includes(pair.vendor)
          const carries = ['anthropic messages', 'openai responses'].includes(pair.client)
          if (signs && carries)
            expect(JSON.stringify(vendor.requests[1]!.body)).toMatch(/"(signature|encrypted_content)":"(anthropic-messages|openai-responses)@/) // prettier-ignore
        },
      )
  })

  test('a structured answer with an optional property', async () => {
    const isStrict = pair.vendor.startsWith('openai')
    await served(
      () => says(isStrict ? '{"a":1,"b":null}' : '{"a":1}'),
      async ({ url }) => {
        for (const stream of [false, true]) {
          const { text } = await ask(url, { structure: true, stream })
          // A client that speaks OpenAI's own format may have asked for the null itself.
          expect(JSON.parse(text)).toEqual({ a: 1 })
        }
      },
    )
  })

  test('a picture', async () => {
    await served([says('A pixel.')], async ({ vendor, url }) => {
      expect((await ask(url, { picture: true })).text).toBe('A pixel.')
      expect(JSON.stringify(vendor.requests[0]!.body)).toContain(png)
    })
  })

  test('a PDF, or the refusal of a vendor that reads none', async () => {
    await served([says('A page.')], async ({ vendor, url }) => {
      const answer = ask(url, { pdf: true })
      if (pair.vendor === 'ollama') {
        const error: unknown = await answer.catch((thrown: unknown) => thrown)
        expect(status(error)).toBe(400)
        expect(String(error)).toContain('does not support document input')
        return expect(vendor.requests).toEqual([])
      }
      expect((await answer).text).toBe('A page.')
      expect(JSON.stringify(vendor.requests[0]!.body)).toContain(pdf)
    })
  })

  test('an error has its status', async () => {
    await served(
      () => fails({ code: 'RATE_LIMITED', statusCode: 429, message: 'Slow down.' }),
      async ({ url }) => {
        for (const stream of [false, true]) {
          const error: unknown = await ask(url, { stream }).catch((thrown: unknown) => thrown)
          expect(status(error)).toBe(429)
          expect(String(error)).toContain('Slow down.')
        }
      },
    )
  })

  test('an abort reaches the vendor', async () => {
    await served(
      () => [says('part'), waits(Infinity)],
      async ({ vendor, url }) => {
        const abort = new AbortController()
        const answer = ask(url, { stream: true, signal: abort.signal }).catch(() => 'ended')
        await expect.poll(() => vendor.model.requests.length).toBe(1)
        abort.abort()
        expect(await answer).toBe('ended')
        await expect.poll(() => vendor.model.requests[0]!.signal.aborted).toBe(true)
      },
    )
  })
})

describe.runIf(peers.isInstalled)('further endpoints', () => {
  test('the openai client makes pictures', async () => {
    const vendor = vendorServer([])
    const config = { apiKey: 'k', fetch: vendor.fetch }
    const painter = image({ model: openai('gpt-image-1'), config })
    await using server = await serveFetch(gateway({ models: {}, images: { painter } }))
    const client = new sdks.OpenAI({ apiKey: 'k', baseURL: `${server.url}/v1`, maxRetries: 0 })
    const made = await client.images.generate({ model: 'painter', prompt: 'A cat.', n: 2 })
    expect(made.data).toHaveLength(2)
    expect(Buffer.from(made.data[0].b64_json, 'base64').length).toBeGreaterThan(0)
    expect(made.created).toBeGreaterThan(0)
    const wrong = client.images.generate({ model: 'nobody', prompt: 'A cat.' })
    await expect(wrong).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
    const names: string[] = []
    for await (const { id } of client.models.list()) names.push(id)
    expect(names).toEqual(['painter'])
  })

  test('the google client counts tokens, lists models and is told what is wrong', async () => {
    const sent: JsonObject[] = []
    const fetch = async (_: unknown, init: RequestInit = {}): Promise<Response> => {
      sent.push(JSON.parse(String(init.body)) as JsonObject)
      return Response.json({ input_tokens: 12 })
    }
    const m = servedModel({ model: anthropic('claude-sonnet-4-5'), config: { apiKey: 'k', fetch } })
    const keys = [{ key: 'sk-google', name: 'g' }]
    await using server = await serveFetch(gateway({ models: { m }, keys }))
    const make = (apiKey: string): Loose =>
      new sdks.GoogleGenAI({ apiKey, httpOptions: { baseUrl: server.url } })
    const client = make('sk-google')
    const counted = await client.models.countTokens({ model: 'm', contents: 'Hi' })
    expect(counted.totalTokens).toBe(12)
    expect(sent[0]).toMatchObject({ messages: [{ role: 'user' }] })
    const names: string[] = []
    for await (const { name } of await client.models.list()) names.push(name)
    expect(names).toEqual(['models/m'])
    expect((await client.models.get({ model: 'm' })).name).toBe('models/m')
    const unknown = client.models.generateContent({ model: 'x', contents: 'Hi' })
    await expect(unknown).rejects.toMatchObject({ status: 404 })
    const stranger = make('sk-other').models.generateContent({ model: 'm', contents: 'Hi' })
    await expect(stranger).rejects.toMatchObject({ status: 401 })
  })

  test('a stream of Google without server-sent events is a list', async () => {
    const vendor = vendorServer([says('one two')], { chunks: 'word' })
    const config = { apiKey: 'k', fetch: vendor.fetch }
    const m = servedModel({ model: openai('gpt-5'), config })
    await using server = await serveFetch(gateway({ models: { m } }))
    const response = await fetch(`${server.url}/v1beta/models/m:streamGenerateContent?key=k`, {
      method: 'POST',
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
    })
    expect(response.headers.get('content-type')).toBe('application/json')
    const list = (await response.json()) as { candidates: { content: { parts: { text?: string }[] } }[] }[] // prettier-ignore
    const text = list.map(({ candidates }) => candidates[0]?.content.parts[0]?.text ?? '').join('')
    expect(text).toBe('one two')
  })
})
