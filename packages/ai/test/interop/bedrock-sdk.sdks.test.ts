/** The official `@aws-sdk/client-bedrock-runtime` and its signer on the other side of our client and our server. */
import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { SignatureV4 } from '@smithy/signature-v4'
import {
  Document,
  Image,
  llm,
  NoRetry,
  ToolResultMessage,
  UserMessage,
  AssistantMessage,
} from '@skein/ai'
import { bedrock, bedrockWith } from '@skein/ai/bedrock'
import {
  calls,
  fails,
  reasons,
  says,
  startVendorServer,
  type RunningVendorServer,
} from '@skein/ai/testing'
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'

const region = 'eu-central-1'
const modelId = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'secret/key+',
  sessionToken: 'token==',
}

interface SdkRequest {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body?: BodyInit
}

/** The client prefers HTTP/2, which our server does not speak without TLS. */
const http1 = {
  async handle({ method, protocol, hostname, port, path, headers, body }: SdkRequest) {
    const { host: _host, 'content-length': _length, ...rest } = headers
    const url = `${protocol}//${hostname}:${port}${path}`
    const response = await fetch(url, { method, headers: rest, body })
    const stream = Readable.fromWeb(response.body as never)
    const sent = Object.fromEntries(response.headers.entries())
    return { response: { statusCode: response.status, headers: sent, body: stream } }
  },
}

const clientOf = (endpoint: string): BedrockRuntimeClient =>
  new BedrockRuntimeClient({
    region,
    endpoint,
    credentials,
    maxAttempts: 1,
    requestHandler: http1,
  })

/** SHA-256 and HMAC as the signer of AWS wants them. */
class Sha256 {
  readonly #hash
  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(key))
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data))
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
  reset(): void {}
}
const bytesOf = (data: string | ArrayBuffer | ArrayBufferView): Buffer =>
  typeof data === 'string'
    ? Buffer.from(data)
    : ArrayBuffer.isView(data)
      ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
      : Buffer.from(data)

interface Sent {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** A server that notes what it is sent and refuses it with 400, which no client repeats. */
async function noting(): Promise<{ url: string; sent: Sent[] }> {
  const sent: Sent[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      sent.push({ path: request.url ?? '', headers: request.headers, body })
      response.writeHead(400, {
        'content-type': 'application/json',
        'x-amzn-errortype': 'ValidationException',
      })
      response.end('{"message":"noted"}')
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent }
}

describe('the client of AWS and our server', () => {
  test('an answer with usage, a system prompt and settings', async () => {
    await using server = await startVendorServer([[reasons('Hm.'), says('Hello.')]])
    const answer = await clientOf(server.url).send(
      new ConverseCommand({
        modelId,
        system: [{ text: 'Be brief.' }],
        messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
        inferenceConfig: { maxTokens: 100 },
      }),
    )
    expect(answer.output?.message?.content).toMatchObject([
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: expect.any(String) } } },
      { text: 'Hello.' },
    ])
    expect(answer.stopReason).toBe('end_turn')
    expect(answer.usage?.totalTokens).toBeGreaterThan(0)
    expect(server.model.requests[0]).toMatchObject({
      system: 'Be brief.',
      params: { inferenceConfig: { maxTokens: 100 } },
    })
  })

  test('a stream of text and calls, event by event', async () => {
    await using server = await startVendorServer(
      [[says('one two three'), calls('add', { a: 1, b: 2 })]],
      { chunkBytes: 7 },
    )
    const { stream } = await clientOf(server.url).send(
      new ConverseStreamCommand({
        modelId,
        messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
        toolConfig: {
          tools: [{ toolSpec: { name: 'add', inputSchema: { json: { type: 'object' } } } }],
        },
      }),
    )
    let text = ''
    let input = ''
    let stopReason: string | undefined
    let tokens = 0
    for await (const event of stream ?? []) {
      text += event.contentBlockDelta?.delta?.text ?? ''
      input += event.contentBlockDelta?.delta?.toolUse?.input ?? ''
      stopReason ??= event.messageStop?.stopReason
      tokens += event.metadata?.usage?.totalTokens ?? 0
    }
    expect(text).toBe('one two three')
    expect(JSON.parse(input)).toEqual({ a: 1, b: 2 })
    expect(stopReason).toBe('tool_use')
    expect(tokens).toBeGreaterThan(0)
  })

  test('a tool round with the content sent back, signatures included', async () => {
    await using server: RunningVendorServer = await startVendorServer([
      [reasons('Add.'), calls('add', { a: 1, b: 2 })],
      says('3'),
    ])
    const client = clientOf(server.url)
    const ask = { role: 'user', content: [{ text: '1+2?' }] } as const
    const toolConfig = {
      tools: [{ toolSpec: { name: 'add', inputSchema: { json: { type: 'object' } } } }],
    }
    const first = await client.send(
      new ConverseCommand({ modelId, messages: [ask as never], toolConfig }),
    )
    const message = first.output!.message!
    const use = message.content!.find(({ toolUse }) => toolUse)!.toolUse!
    const result = { toolResult: { toolUseId: use.toolUseId!, content: [{ text: '3' }] } }
    const second = await client.send(
      new ConverseCommand({
        modelId,
        messages: [ask as never, message, { role: 'user', content: [result] }],
        toolConfig,
      }),
    )
    expect(second.output?.message?.content).toMatchObject([{ text: '3' }])
  })

  test('errors before and inside of a stream have the names of AWS', async () => {
    await using server = await startVendorServer([
      fails({ code: 'RATE_LIMITED', message: 'Slow.' }),
      [says('one'), fails({ code: 'PROVIDER_ERROR', message: 'Overloaded.' })],
    ])
    const input = { modelId, messages: [{ role: 'user' as const, content: [{ text: 'Hi' }] }] }
    const client = clientOf(server.url)
    await expect(client.send(new ConverseCommand(input))).rejects.toMatchObject({
      name: 'ThrottlingException',
      message: 'Slow.',
    })
    const { stream } = await client.send(new ConverseStreamCommand(input))
    const reading = (async () => {
      for await (const event of stream ?? []) void event
    })()
    await expect(reading).rejects.toMatchObject({ name: 'InternalServerException' })
  })
})

describe('our client and the signer of AWS', () => {
  test('a signature is the one that AWS computes', async () => {
    const { url, sent } = await noting()
    const model = bedrockWith({ region, credentials, endpoint: url })(modelId)
    for (const text of ['Hi', 'Grüße 🧵', 'x'.repeat(50_000)])
      for (const isStream of [false, true]) {
        const instance = llm({
          model,
          config: { retryStrategy: new NoRetry(), headers: { 'x-own': '  a   b ' } },
        })
        const asked = isStream ? instance.stream(text).turn : instance.generate(text)
        await expect(asked).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
      }
    expect(sent).toHaveLength(6)
    for (const { path, headers, body } of sent) {
      const authorization = String(headers['authorization'])
      const signed = /SignedHeaders=([^,]+)/.exec(authorization)![1]!.split(';')
      const time = String(headers['x-amz-date']).replace(
        /^(....)(..)(..)T(..)(..)/,
        '$1-$2-$3T$4:$5:',
      )
      const signer = new SignatureV4({
        service: 'bedrock',
        region,
        credentials,
        sha256: Sha256,
        applyChecksum: false,
      })
      const theirs = await signer.sign(
        {
          method: 'POST',
          protocol: 'http:',
          hostname: '127.0.0.1',
          path,
          query: {},
          headers: Object.fromEntries(
            signed
              .filter((name) => !name.startsWith('x-amz'))
              .map((name) => [name, String(headers[name])]),
          ),
          body,
        },
        { signingDate: new Date(time), signableHeaders: new Set(signed) },
      )
      expect(authorization).toBe(theirs.headers['authorization'])
    }
  })

  const input = (more: Partial<ConverseCommandInput>): ConverseCommandInput => ({
    modelId,
    messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
    ...more,
  })
  const png = 'iVBORw0KGgo='
  const pdf = 'JVBERi0xLjQ='
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  }
  const tool = {
    name: 'weather',
    description: 'The weather.',
    parameters: schema,
    run: () => 'rain',
  }
  const toolConfig = {
    tools: [
      { toolSpec: { name: 'weather', description: 'The weather.', inputSchema: { json: schema } } },
    ],
  }

  test.each<[string, ConverseCommandInput, object, readonly unknown[]]>([
    ['text', input({}), {}, ['Hi']],
    ['system', input({ system: [{ text: 'Be brief.' }] }), { system: 'Be brief.' }, ['Hi']],
    [
      'settings',
      input({ inferenceConfig: { maxTokens: 100, temperature: 0.5, stopSequences: ['END'] } }),
      { maxOutputTokens: 100, temperature: 0.5, stop: 'END' },
      ['Hi'],
    ],
    [
      'media',
      input({
        messages: [
          {
            role: 'user',
            content: [
              { image: { format: 'png', source: { bytes: Buffer.from(png, 'base64') } } },
              {
                document: {
                  format: 'pdf',
                  name: 'a',
                  source: { bytes: Buffer.from(pdf, 'base64') },
                },
              },
              { text: 'What?' },
            ],
          },
        ],
      }),
      {},
      [Image.fromBase64(png), Document.fromBase64(pdf, 'application/pdf', 'a'), 'What?'],
    ],
    [
      'tools',
      input({ toolConfig: { ...toolConfig, toolChoice: { any: {} } } } as never),
      { tools: [tool], toolChoice: 'required' },
      ['Hi'],
    ],
    [
      'history',
      input({
        messages: [
          { role: 'user', content: [{ text: 'Weather?' }] },
          {
            role: 'assistant',
            content: [{ toolUse: { toolUseId: 't1', name: 'weather', input: { city: 'Oslo' } } }],
          },
          {
            role: 'user',
            content: [
              { toolResult: { toolUseId: 't1', content: [{ text: 'rain' }] } },
              { text: 'Thanks' },
            ],
          },
        ],
        toolConfig,
      } as never),
      { tools: [tool] },
      [
        [
          new UserMessage('Weather?'),
          new AssistantMessage(
            [],
            [{ toolCallId: 't1', toolName: 'weather', arguments: { city: 'Oslo' } }],
          ),
          new ToolResultMessage([{ toolCallId: 't1', toolName: 'weather', result: 'rain' }]),
        ],
        'Thanks',
      ],
    ],
    [
      'structure',
      input({
        outputConfig: {
          textFormat: {
            type: 'json_schema',
            structure: { jsonSchema: { name: 'answer', schema: JSON.stringify(schema) } },
          },
        },
      }),
      { structure: schema },
      ['Hi'],
    ],
    [
      'thinking',
      input({
        additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2048 } },
      }),
      { reasoning: { budget: 2048 } },
      ['Hi'],
    ],
  ])(
    'the body and path of %s are those of the client of AWS',
    async (_, theirs, options, given) => {
      const { url, sent } = await noting()
      const client = clientOf(url)
      await expect(client.send(new ConverseCommand(theirs))).rejects.toThrow()
      await expect(client.send(new ConverseStreamCommand(theirs as never))).rejects.toThrow()
      const model = llm({
        ...options,
        model: bedrock(modelId, { region }),
        config: { baseUrl: url, apiKey: 'k', retryStrategy: new NoRetry() },
      })
      await expect(model.generate(...(given as [string]))).rejects.toThrow()
      await expect(model.stream(...(given as [string])).turn).rejects.toThrow()
      const [whole, streamed, ours, oursStreamed] = sent.map(({ path, body }) => ({
        path,
        body: JSON.parse(body) as unknown,
      }))
      expect(ours).toEqual(whole)
      expect(oursStreamed).toEqual(streamed)
    },
  )
})
