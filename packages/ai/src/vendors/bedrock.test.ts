import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import type { JsonObject } from '@skein/base'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AssistantMessage, UserMessage } from '../contract/message.ts'
import { llm } from '../llm.ts'
import { NoRetry } from '../transport/retry.ts'
import { bedrock, type BedrockOptions, bedrockWith } from './bedrock.ts'

const SECRET = 'canarySecretAccessKey0123456789+/abc'
const TOKEN = 'canarySessionToken0123456789=='
const ID = 'AKIACANARY'
const region = 'eu-central-1'
const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const hello = {
  output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
}

interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: string
}

/** A `fetch` that notes what it is sent; the answers are given in order, the last one again and again. */
function answering(...answers: readonly (() => Response)[]) {
  const sent: Sent[] = []
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const { body } = init
    const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body ?? '')
    sent.push({ url, method: init.method ?? 'GET', headers: new Headers(init.headers), body: text })
    return answers[Math.min(sent.length, answers.length) - 1]!()
  }
  return { sent, fetch }
}
const ok = (): Response => Response.json(hello)
const keys = { accessKeyId: ID, secretAccessKey: SECRET, sessionToken: TOKEN }

beforeEach(() => {
  for (const name of [
    'AWS_BEARER_TOKEN_BEDROCK',
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
    'AWS_PROFILE',
    'AWS_REGION',
    'AWS_DEFAULT_REGION',
  ])
    // prettier-ignore
    vi.stubEnv(name, '')
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/does/not/exist')
  vi.stubEnv('AWS_CONFIG_FILE', '/does/not/exist')
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

const ask = (fetch: typeof globalThis.fetch | object, options: BedrockOptions = {}, id = claude) =>
  llm({
    model: bedrockWith({ region, ...options })(id),
    config: { fetch: fetch as never, retryStrategy: new NoRetry() },
  }).generate('Hi')

describe('authentication', () => {
  test('a key of Bedrock is sent as it is', async () => {
    vi.stubEnv('AWS_BEARER_TOKEN_BEDROCK', 'bedrock-key')
    const { fetch, sent } = answering(ok)
    await llm({ model: bedrock(claude, { region }), config: { fetch } }).generate('Hi')
    expect(sent[0]!.headers.get('authorization')).toBe('Bearer bedrock-key')
    expect(sent[0]!.url).toBe(
      'https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse',
    )
  })

  test('keys sign the request, also with the token of a session', async () => {
    const { fetch, sent } = answering(ok)
    await ask(fetch, { credentials: keys })
    const { headers } = sent[0]!
    expect(headers.get('authorization')).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIACANARY\/\d{8}\/eu-central-1\/bedrock\/aws4_request, SignedHeaders=accept;content-type;host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
    expect(headers.get('x-amz-security-token')).toBe(TOKEN)
  })

  test('keys of the environment', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', ID)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET)
    const { fetch, sent } = answering(ok)
    await ask(fetch)
    expect(sent[0]!.headers.get('authorization')).toContain(`Credential=${ID}/`)
  })

  test('a profile, with comments and other sections', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'aws-'))
    const file = join(folder, 'credentials')
    await writeFile(file, `# mine\n[default]\naws_access_key_id = no\naws_secret_access_key=no\n\n[work]\naws_access_key_id = ${ID}\naws_secret_access_key = ${SECRET}\n`) // prettier-ignore
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', file)
    const { fetch, sent } = answering(ok)
    await ask(fetch, { profile: 'work' })
    expect(sent[0]!.headers.get('authorization')).toContain(`Credential=${ID}/`)
    await writeFile(file, '[work]\nsso_session = corp\n')
    await expect(ask(fetch, { profile: 'work' })).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      message: expect.stringContaining('sso_session'),
    })
    await rm(folder, { recursive: true })
  })

  test('credentials of a container; a far address is refused', async () => {
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://169.254.170.23/v1/credentials')
    vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN', 'pod-token')
    const answer = { AccessKeyId: ID, SecretAccessKey: SECRET, Token: TOKEN, Expiration: '2099-01-01T00:00:00Z' } // prettier-ignore
    const service = answering(() => Response.json(answer))
    const { fetch, sent } = answering(ok)
    await ask(fetch, { fetch: service.fetch })
    expect(service.sent[0]).toMatchObject({ url: 'http://169.254.170.23/v1/credentials' })
    expect(service.sent[0]!.headers.get('authorization')).toBe('pod-token')
    expect(sent[0]!.headers.get('x-amz-security-token')).toBe(TOKEN)
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', 'http://evil.example/steal')
    await expect(ask(fetch, { fetch: service.fetch })).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' }) // prettier-ignore
    expect(service.sent).toHaveLength(1)
  })

  test('credentials of an instance, by a token', async () => {
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', '')
    const service = answering(
      () => new Response('imds-token'),
      () => new Response('my-role'),
      () => Response.json({ AccessKeyId: ID, SecretAccessKey: SECRET, Token: TOKEN }),
    )
    await ask(answering(ok).fetch, { fetch: service.fetch })
    expect(service.sent.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'PUT http://169.254.169.254/latest/api/token',
      'GET http://169.254.169.254/latest/meta-data/iam/security-credentials/',
      'GET http://169.254.169.254/latest/meta-data/iam/security-credentials/my-role',
    ])
    expect(service.sent[2]!.headers.get('x-aws-ec2-metadata-token')).toBe('imds-token')
  })

  test('credentials that end are renewed before, once for concurrent calls', async () => {
    let asked = 0
    const credentials = async () => ({ ...keys, accessKeyId: `ID${++asked}`, expiresAt: Date.now() + (asked === 1 ? 60_000 : 3_600_000) }) // prettier-ignore
    const { fetch, sent } = answering(ok)
    const model = bedrockWith({ region, credentials })(claude)
    const model1 = llm({ model, config: { fetch } })
    await Promise.all([model1.generate('a'), model1.generate('b'), model1.generate('c')])
    expect(asked).toBe(1)
    await model1.generate('d') // the first ones have a minute left, which is too little
    expect(asked).toBe(2)
    await model1.generate('e')
    expect(asked).toBe(2)
    expect(sent.at(-1)!.headers.get('authorization')).toContain('Credential=ID2/')
  })
})

describe('a clock that is wrong', () => {
  const date = new Date(Date.now() + 40 * 60_000)
  const skewed = (): Response =>
    Response.json(
      { message: 'Signature not yet current' },
      { status: 403, headers: { date: date.toUTCString(), 'x-amzn-errortype': 'InvalidSignatureException' } }, // prettier-ignore
    )
  const dayTime = (sent: Sent): string => sent.headers.get('x-amz-date')!.slice(0, 13)

  test("is answered once with the server's time, and remembered", async () => {
    const { fetch, sent } = answering(skewed, ok)
    const model = llm({
      model: bedrockWith({ region, credentials: keys })(claude),
      config: { fetch, retryStrategy: new NoRetry() },
    })
    expect((await model.generate('Hi')).text).toBe('Hello')
    await model.generate('Hi')
    expect(sent).toHaveLength(3)
    const iso = date
      .toISOString()
      .replace(/[-:]|\.\d{3}/g, '')
      .slice(0, 13)
    expect([sent[1]!, sent[2]!].map(dayTime)).toEqual([iso, iso])
  })

  test('is answered for each of several requests that were signed before it was known', async () => {
    const { fetch, sent } = answering(skewed, skewed, skewed, ok)
    const model = llm({
      model: bedrockWith({ region, credentials: keys })(claude),
      config: { fetch, retryStrategy: new NoRetry() },
    })
    const turns = await Promise.all(['a', 'b', 'c'].map((text) => model.generate(text)))
    expect(turns.map(({ text }) => text)).toEqual(['Hello', 'Hello', 'Hello'])
    expect(sent).toHaveLength(6)
  })

  test('is not blamed for a signature that stays wrong', async () => {
    const { fetch, sent } = answering(skewed)
    await expect(ask(fetch, { credentials: keys })).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' }) // prettier-ignore
    expect(sent).toHaveLength(2)
  })

  test('is not blamed for another refusal', async () => {
    const refused = (): Response => Response.json({ __type: 'AccessDeniedException', message: 'No' }, { status: 403, headers: { date: date.toUTCString() } }) // prettier-ignore
    const { fetch, sent } = answering(refused)
    await expect(ask(fetch, { credentials: keys })).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' }) // prettier-ignore
    expect(sent).toHaveLength(1)
  })
})

describe('secrets', () => {
  test('are in no error, reference, address or log, whatever AWS or a service says', async () => {
    const logs: unknown[] = []
    for (const name of ['log', 'warn', 'error', 'debug', 'info'] as const)
      vi.spyOn(console, name).mockImplementation((...args) => void logs.push(args))
    const echo = (): Response =>
      Response.json({ message: `Bad: ${SECRET} ${TOKEN}`, __type: SECRET }, { status: 403 })
    const model = bedrockWith({ region, credentials: keys })(claude)
    const errors: unknown[] = []
    const { fetch, sent } = answering(echo)
    errors.push(await ask(fetch, { credentials: keys }).catch((error: unknown) => error))
    const down = async (): Promise<Response> => {
      throw new Error(`connect with ${SECRET}`)
    }
    errors.push(await ask(down, { credentials: keys }).catch((error: unknown) => error))
    vi.stubEnv('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', '/x')
    for (const service of [
      () => new Response(`{"SecretAccessKey":"${SECRET}`),
      () => Response.json({ SecretAccessKey: SECRET, AccessKeyId: 7 }),
      () => new Response(SECRET, { status: 500 }),
    ])
      errors.push(await ask(fetch, { fetch: answering(service).fetch }).catch((error: unknown) => error)) // prettier-ignore
    errors.push(await ask(fetch, { credentials: async () => { throw new Error(`vault: no`) } }).catch((error: unknown) => error)) // prettier-ignore
    expect(errors).toHaveLength(6)
    for (const error of errors) expect(error).toBeInstanceOf(Error)
    const shown = [...errors, model, model.provider, logs, sent.map(({ url }) => url)]
      .map(
        (value) =>
          `${inspect(value, { depth: 20 })} ${JSON.stringify(value)} ${String((value as Error).stack)}`,
      ) // prettier-ignore
      .join('\n')
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain(TOKEN)
    vi.restoreAllMocks()
  })
})

describe('requests', () => {
  async function sentBody(options: Partial<Parameters<typeof llm>[0]>, ...input: [never?]) {
    const { fetch, sent } = answering(ok)
    const config = { fetch, apiKey: 'k' }
    const model = llm({ model: bedrock(claude, { region }), ...options, config })
    const turn = await model.generate(...((input.length > 0 ? input : ['Hi']) as [string]))
    return { body: JSON.parse(sent[0]!.body) as JsonObject, turn }
  }

  test('settings of a Claude are written where Converse has them', async () => {
    const tool = { name: 'f', description: 'F.', parameters: { type: 'object' }, run: () => 1 }
    const { body } = await sentBody({
      reasoning: { budget: 2048 },
      maxOutputTokens: 9000,
      stop: 'END',
      tools: [tool],
      toolChoice: 'auto',
    })
    expect(body).toMatchObject({
      inferenceConfig: { maxTokens: 9000, stopSequences: ['END'] },
      toolConfig: { toolChoice: { auto: {} }, tools: [{ toolSpec: { name: 'f' } }] },
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2048 } },
    })
  })

  test('a model that takes no schema receives it in the system prompt', async () => {
    const structure = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false } // prettier-ignore
    const { body, turn } = await sentBody({
      model: bedrock('amazon.nova-pro-v1:0', { region }),
      structure,
    }).catch(() => ({ body: undefined, turn: undefined }))
    expect(turn).toBeUndefined() // the answer is no JSON
    expect(body).toBeUndefined()
    const { fetch, sent } = answering(() => Response.json({ ...hello, output: { message: { content: [{ text: '{"a":"b"}' }] } } })) // prettier-ignore
    const told = await llm({
      model: bedrock('amazon.nova-pro-v1:0', { region }),
      structure,
      config: { fetch, apiKey: 'k' },
    }).generate('Hi')
    expect(JSON.parse(sent[0]!.body)).not.toHaveProperty('outputConfig')
    expect(sent[0]!.body).toContain('matches this JSON Schema')
    expect(told.warnings).toMatchObject([{ code: 'structure_not_enforced' }])
    expect(told.data).toEqual({ a: 'b' })
  })

  test('users and assistants take turns, and cache points follow their blocks', async () => {
    const { fetch, sent } = answering(ok)
    const point = { cachePoint: { type: 'default' } }
    await llm({ model: bedrock(claude, { region }), config: { fetch, apiKey: 'k' } }).generate([
      new UserMessage([{ type: 'text', text: 'a', metadata: { bedrock: point } }]),
      new UserMessage('b'),
      new AssistantMessage('c'),
      new UserMessage('d'),
    ])
    expect(JSON.parse(sent[0]!.body)).toEqual({
      messages: [
        { role: 'user', content: [{ text: 'a' }, point, { text: 'b' }] },
        { role: 'assistant', content: [{ text: 'c' }] },
        { role: 'user', content: [{ text: 'd' }] },
      ],
    })
  })
})

test.each([
  ['eu.anthropic.claude-sonnet-4-5-20250929-v1:0', 'eu'],
  ['us.amazon.nova-pro-v1:0', undefined],
  ['deepseek.v3.2', 'eu-central-1'],
  ['arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc', undefined],
  ['global.anthropic.claude-sonnet-4-5-20250929-v1:0', 'global'],
  ['anthropic.claude-sonnet-4-5-20250929-v1:0', 'eu-central-1'],
  ['arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.meta.llama4-x', 'eu'],
])('requests for %s are processed in %s', (id, place) => {
  expect(llm({ model: bedrock(id, { region }), config: { apiKey: 'k' } }).model.region).toBe(place)
})

test('credentials that are passed are not replaced by a key of the environment', async () => {
  vi.stubEnv('AWS_BEARER_TOKEN_BEDROCK', 'key-of-the-server')
  const { fetch, sent } = answering(ok)
  await ask(fetch, { credentials: keys })
  expect(sent[0]!.headers.get('authorization')).toContain(`Credential=${ID}/`)
})

test('an address of the caller, and London for a profile of Europe, are not in the Union', () => {
  const regionOf = (options: BedrockOptions): string | undefined =>
    llm({ model: bedrock(claude, options), config: { apiKey: 'k' } }).model.region
  expect(regionOf({ region, endpoint: 'https://proxy.example' })).toBeUndefined()
  expect(regionOf({ region: 'eu-west-2' })).toBe('eu-west-2')
  expect(regionOf({ region: 'eu-west-1' })).toBe('eu')
})
