/** What is easily lost between this package and the newest providers of the AI SDK: options, files, blank text, addresses. */
import {
  AssistantMessage,
  Document,
  Image,
  llm,
  type Message,
  NoRetry,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { type AiSdkModel, fromAiSdk, toAiSdk } from '@skein/ai/ai-sdk'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { cacheMiddleware, memoryCache } from '@skein/ai/middleware'
import { openai } from '@skein/ai/openai'
import { says, type VendorServer, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { peersOf } from '../../../scripts/peers.ts'

const peers = peersOf('sdks')

const makers = {
  anthropic: ['@ai-sdk/anthropic', 'createAnthropic', 'claude-sonnet-4-5'],
  openai: ['@ai-sdk/openai', 'createOpenAI', 'gpt-5'],
  google: ['@ai-sdk/google', 'createGoogle', 'gemini-2.5-flash'],
} as const
type Name = keyof typeof makers

async function made(name: Name, vendor: VendorServer, more: object = {}): Promise<AiSdkModel> {
  const [folder, maker, id] = makers[name]
  type Make = (options: object) => (id: string) => AiSdkModel
  const module = await peers.load<Record<string, Make>>(folder)
  return module[maker]!({ apiKey: 'k', fetch: vendor.fetch, ...more })(id)
}

const call = { toolCallId: 'c1', toolName: 'look', arguments: {} }
const seen = { type: 'text', text: 'a cat' } as const
const png = { type: 'image', source: { type: 'base64', data: 'AAAA' }, mimeType: 'image/png' } as const // prettier-ignore

describe.runIf(peers.isInstalled)('fromAiSdk', () => {
  async function sent(name: Name, history: readonly Message[], options: object = {}) {
    const vendor = vendorServer([says('ok')])
    const instance = llm({ model: fromAiSdk(await made(name, vendor)), ...options })
    const turn = await instance.generate(history)
    return { body: vendor.requests[0]!.body, warnings: turn.warnings }
  }

  test('provider options of the caller are added to those of the settings, and win', async () => {
    const options = {
      reasoning: { budget: 5000 },
      parallelToolCalls: false,
      params: { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    }
    const { body } = await sent('anthropic', [new UserMessage('Hi')], options)
    expect(body).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 5000 },
      cache_control: { type: 'ephemeral' },
    })
    const own = { thinking: { type: 'enabled', budgetTokens: 2000 } }
    const params = { providerOptions: { anthropic: own } }
    const second = await sent('anthropic', [new UserMessage('Hi')], { ...options, params })
    expect(second.body).toMatchObject({ thinking: { budget_tokens: 2000 } })
  })

  test.each(['anthropic', 'openai', 'google'] as const)('%s: a document of text', async (name) => {
    const notes = Document.fromText('One, two.', 'Notes')
    const { body } = await sent(name, [new UserMessage([notes])])
    const isData = JSON.stringify(body).includes(btoa('One, two.'))
    expect(isData || JSON.stringify(body).includes('One, two.')).toBe(true)
  })

  test.each(['anthropic', 'openai', 'google'] as const)('%s: blank text', async (name) => {
    const { body } = await sent(name, [
      new UserMessage([
        { type: 'text', text: ' ' },
        { type: 'text', text: 'Look.' },
      ]),
      new AssistantMessage('\n\n', [call]),
      new ToolResultMessage([{ ...call, result: [{ type: 'text', text: '\n' }, seen] }]),
      new AssistantMessage('\n'),
      new UserMessage('And?'),
    ])
    expect(JSON.stringify(body)).not.toMatch(/"text":"(?:\s|\\n)*"/)
    expect(JSON.stringify(body)).toContain('And?')
  })

  test('a picture in a failed result is named, with a warning', async () => {
    const failed = { ...call, isError: true, result: [{ type: 'text', text: 'bad' }, png] } as const
    const history = [new UserMessage('Hi'), new AssistantMessage([], [call]), new ToolResultMessage([failed])] // prettier-ignore
    const { body, warnings } = await sent('anthropic', history)
    expect(JSON.stringify(body)).toContain('bad')
    expect(JSON.stringify(body)).toContain('[image, image/png: not shown]')
    expect(warnings).toMatchObject([{ code: 'unsupported_block' }])
  })

  test('uploaded files are sent by id to their vendor, and named for others', async () => {
    const pdf = Document.fromUpload({ provider: 'openai', fileId: 'file-1' })
    const photo = Image.fromUpload({ provider: 'openai', fileId: 'file-2' })
    const own = await sent('openai', [new UserMessage([pdf, photo])])
    expect(JSON.stringify(own.body)).toMatch(/"file_id":"file-1".*"file_id":"file-2"/)
    const history = [new UserMessage([pdf]), new AssistantMessage('Seen.'), new UserMessage('And?')]
    const other = await sent('google', history)
    expect(JSON.stringify(other.body)).toContain('[document, application/pdf: not shown]')
    await expect(sent('anthropic', [new UserMessage([pdf])])).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('was uploaded to openai'),
    })
  })

  test.each(['openai', 'anthropic', 'google'] as const)(
    '%s: a cache keeps the answers of two addresses apart',
    async (name) => {
      const middleware = [cacheMiddleware({ store: memoryCache() })]
      const texts: string[] = []
      const ask = async (baseURL: string, text: string): Promise<void> => {
        const model = fromAiSdk(await made(name, vendorServer([says(text)]), { baseURL }))
        texts.push((await llm({ model, middleware }).generate('Hi')).response.text)
      }
      const version = name === 'google' ? 'v1beta' : 'v1'
      await ask(`https://eu.test/${version}`, 'eu')
      await ask(`https://us.test/${version}`, 'us')
      await ask(`https://eu.test/${version}`, 'eu again')
      expect(texts).toEqual(['eu', 'us', 'eu'])
    },
  )
})

describe.runIf(peers.isInstalled)('toAiSdk', () => {
  const config = (vendor: VendorServer) => ({
    apiKey: 'k',
    fetch: vendor.fetch,
    retryStrategy: new NoRetry(),
  })
  interface Ai {
    generateText(options: object): Promise<{ text: string }>
  }

  test.each([
    ['anthropic', anthropic('claude-sonnet-4-5'), '"file_id":"file_1"'],
    ['openai', openai('gpt-5'), '"file_id":"file_1"'],
    ['google', google('gemini-2.5-flash'), 'files/file_1'],
  ] as const)('%s: a reference to an uploaded file', async (name, model, expected) => {
    const { generateText } = await peers.load<Ai>('ai')
    const vendor = vendorServer([says('ok')])
    const fileId = name === 'google' ? 'files/file_1' : 'file_1'
    const data = { type: 'reference', reference: { [name]: fileId, acme: 'other' } }
    const content = [{ type: 'file', mediaType: 'application/pdf', data }]
    const messages = [{ role: 'user', content }]
    await generateText({ model: toAiSdk({ model, config: config(vendor) }), messages })
    expect(JSON.stringify(vendor.requests[0]!.body)).toContain(expected)
  })

  test('a reference to a file that the vendor does not have is refused with its reason', async () => {
    const { generateText } = await peers.load<Ai>('ai')
    const model = toAiSdk({ model: anthropic('claude-sonnet-4-5'), config: config(vendorServer([])) }) // prettier-ignore
    const data = { type: 'reference', reference: { openai: 'file-1' } }
    const messages = [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data }] }]
    await expect(generateText({ model, messages, maxRetries: 0 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('was uploaded to openai; anthropic does not have it'),
    })
  })

  test('thinking leaves room for the answer below a small limit', async () => {
    const { generateText } = await peers.load<Ai>('ai')
    const vendor = vendorServer([says('ok')])
    const model = toAiSdk({ model: anthropic('claude-sonnet-4-5'), config: config(vendor) })
    await generateText({ model, prompt: 'Hi', maxOutputTokens: 5000, reasoning: 'high' })
    const { max_tokens, thinking } = vendor.requests[0]!.body as JsonObject
    expect(max_tokens).toBe(5000)
    expect((thinking as { budget_tokens: number }).budget_tokens).toBeLessThanOrEqual(4000)
  })
})
