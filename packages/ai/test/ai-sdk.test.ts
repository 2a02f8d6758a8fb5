import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AiSdkModel, fromAiSdk, toAiSdk } from '@skein/ai/ai-sdk'
import { Image, llm } from '@skein/ai'
import { calls, says, scripted, startVendorServer } from '@skein/ai/testing'
import { peersOf } from '../../../scripts/peers.ts'

const peers = peersOf('packages/ai/test/peers')
type Make = (options: object) => (id: string) => AiSdkModel
const weather = {
  name: 'weather',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  run: ({ city }: { city: string }) => `rain in ${city}`,
} as const

describe.runIf(peers.isInstalled)('a model of an AI SDK provider', () => {
  let server: Server
  let origin = ''
  let answers: unknown[] = []
  let seen: { path: string; body: string }[] = []

  beforeAll(async () => {
    server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        seen.push({ path: request.url ?? '', body })
        const answer = answers.shift()
        const status = answer === undefined ? 400 : 200
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(answer ?? { message: 'no' }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  beforeEach(() => {
    seen = []
    answers = []
  })

  const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
  const converse = (content: unknown[], stopReason: string) => ({
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage,
    metrics: { latencyMs: 1 },
  })

  async function bedrock(): Promise<AiSdkModel> {
    const { createAmazonBedrock } = await peers.load<{ createAmazonBedrock: Make }>(
      '@ai-sdk/amazon-bedrock',
    )
    return createAmazonBedrock({
      region: 'us-east-1',
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'fake',
      baseURL: origin,
    })('anthropic.claude-3-haiku-20240307-v1:0')
  }

  test('Bedrock: tools, an image and usage', async () => {
    answers = [
      converse([{ toolUse: { toolUseId: 't1', name: 'weather', input: { city: 'Oslo' } } }], 'tool_use'), // prettier-ignore
      converse([{ text: 'Rain.' }], 'end_turn'),
    ]
    const model = fromAiSdk(await bedrock())
    const turn = await llm({ model, tools: [weather], system: 'Be brief.' }).generate(
      'Weather?',
      Image.fromBase64('iVBORw0KGgo='),
    )
    expect(turn.response.text).toBe('Rain.')
    expect(turn.toolExecutions).toMatchObject([{ toolName: 'weather', result: 'rain in Oslo' }])
    expect(turn.usage).toMatchObject({ inputTokens: 6, outputTokens: 4 })
    expect(turn.stopReason).toBe('end_turn')
    expect(seen[0]?.path).toContain('/converse')
    expect(seen[0]?.body).toContain('"image"')
    expect(seen[1]?.body).toContain('rain in Oslo')
  })

  test('a failure is a typed error of ours', async () => {
    await expect(llm({ model: fromAiSdk(await bedrock()) }).generate('hi')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      statusCode: 400,
      provider: 'amazon-bedrock',
    })
  })

  test('Vertex: an express key, a call and its result', async () => {
    const { createVertex } = await peers.load<{ createVertex: Make }>('@ai-sdk/google-vertex')
    const model = createVertex({ apiKey: 'fake', baseURL: origin })('gemini-2.5-flash')
    const candidate = (part: object) => ({
      candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    })
    answers = [
      candidate({ functionCall: { name: 'weather', args: { city: 'Rome' } } }),
      candidate({ text: 'Rain.' }),
    ]
    const turn = await llm({ model: fromAiSdk(model), tools: [weather] }).generate('Weather?')
    expect(turn.response.text).toBe('Rain.')
    expect(turn.toolExecutions).toMatchObject([{ result: 'rain in Rome' }])
    expect(seen[0]?.path).toContain('gemini-2.5-flash:generateContent')
  })

  test.each(['openai', 'anthropic'] as const)(
    '%s: streams the same as it completes',
    async (name) => {
      const vendor = await startVendorServer((request) =>
        request.messages.some(({ type }) => type === 'tool_result')
          ? says('It rains.')
          : calls('weather', { city: 'Oslo' }),
      )
      try {
        const module = await peers.load<Record<string, Make>>(`@ai-sdk/${name}`)
        const make = module[name === 'openai' ? 'createOpenAI' : 'createAnthropic']!
        const provider = make({ apiKey: 'fake', baseURL: vendor.baseUrls[name] })
        const ours = llm({ model: fromAiSdk(provider('any')), tools: [weather] })
        const whole = await ours.generate('Weather?')
        const streamed = await ours.stream('Weather?').turn
        for (const turn of [whole, streamed]) {
          expect(turn.response.text).toBe('It rains.')
          expect(turn.toolExecutions).toMatchObject([{ result: 'rain in Oslo' }])
          expect(turn.usage.totalTokens).toBeGreaterThan(0)
        }
      } finally {
        await vendor.close()
      }
    },
  )
})

describe.runIf(peers.isInstalled)('a model of ours in the AI SDK', () => {
  interface Result {
    readonly text: string | Promise<string>
    readonly textStream: AsyncIterable<string>
    readonly usage: { totalTokens: number }
    readonly steps: readonly unknown[]
  }
  interface Ai {
    generateText(options: object): Promise<Result>
    streamText(options: object): Result
    tool(definition: object): object
    jsonSchema(schema: object): object
    stepCountIs(count: number): unknown
  }
  const script = () =>
    scripted([calls('weather', { city: 'Oslo' }), says('It rains in Oslo.')], { chunks: 'word' })

  async function options() {
    const ai = await peers.load<Ai>('ai')
    const ran: unknown[] = []
    const tools = {
      weather: ai.tool({
        description: 'The weather.',
        inputSchema: ai.jsonSchema(weather.parameters),
        execute: async (input: unknown) => {
          ran.push(input)
          return 'rain'
        },
      }),
    }
    return { ai, ran, tools, stopWhen: ai.stepCountIs(3) }
  }

  test('generateText runs its tools', async () => {
    const { ai, ran, tools, stopWhen } = await options()
    const scriptedModel = script()
    const model = toAiSdk({ model: scriptedModel })
    const result = await ai.generateText({ model, tools, stopWhen, prompt: 'Weather?', system: 'Be brief.' }) // prettier-ignore
    expect(result.text).toBe('It rains in Oslo.')
    expect(ran).toEqual([{ city: 'Oslo' }])
    expect(result.steps).toHaveLength(2)
    expect(scriptedModel.requests[1]).toMatchObject({
      system: 'Be brief.',
      messages: [
        { type: 'user' },
        { type: 'assistant' },
        { type: 'tool_result', results: [{ toolName: 'weather', result: 'rain' }] },
      ],
    })
  })

  test('streamText streams text and runs its tools', async () => {
    const { ai, ran, tools, stopWhen } = await options()
    const model = toAiSdk({ model: script() })
    const result = ai.streamText({ model, tools, stopWhen, prompt: 'Weather?' })
    let text = ''
    for await (const piece of result.textStream) text += piece
    expect(text).toBe('It rains in Oslo.')
    expect(ran).toEqual([{ city: 'Oslo' }])
  })
})
