import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import type { JsonObject } from '@skein/base'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { llm } from '../llm.ts'
import { countTokens } from '../models.ts'
import { NoRetry } from '../transport/retry.ts'
import { vertex, type VertexOptions, vertexWith } from './vertex.ts'

const TOKEN = 'ya29.canary-access-token-0123456789'
const REFRESH = '1//canary-refresh-token-0123456789'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
const account: JsonObject = {
  type: 'service_account',
  client_email: 'robot@my-project.iam.gserviceaccount.com',
  private_key: pem,
  private_key_id: 'key-1',
  token_uri: 'https://oauth2.googleapis.com/token',
}
const place = { project: 'my-project', location: 'europe-west4' }
const gemini = {
  candidates: [{ content: { parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
}
const claude = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
}

interface Sent {
  readonly url: string
  readonly headers: Headers
  readonly body: string
}

/** A `fetch` that notes what it is sent; the answers are given in order, the last one again and again. */
function answering(...answers: readonly (() => Response)[]) {
  const sent: Sent[] = []
  const fetch = async (url: string, { headers, body }: RequestInit = {}): Promise<Response> => {
    const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body ?? '')
    sent.push({ url, headers: new Headers(headers), body: text })
    return answers[Math.min(sent.length, answers.length) - 1]!()
  }
  return { sent, fetch }
}
const tokens = (token = TOKEN, expires_in = 3600) => answering(() => Response.json({ access_token: token, expires_in })) // prettier-ignore
const ok = (): Response => Response.json(gemini)

beforeEach(() => {
  for (const name of [
    'GOOGLE_APPLICATION_CREDENTIALS',
    'GOOGLE_CLOUD_PROJECT',
    'GCLOUD_PROJECT',
    'GOOGLE_CLOUD_LOCATION',
  ])
    // prettier-ignore
    vi.stubEnv(name, '')
  vi.stubEnv('HOME', '/does/not/exist')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

const ask = (fetch: unknown, options: VertexOptions, id = 'gemini-2.5-pro') =>
  llm({
    model: vertexWith({ ...place, ...options })(id),
    config: { fetch: fetch as never, retryStrategy: new NoRetry() },
  }).generate('Hi')

const claimsOf = (jwt: string): JsonObject => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()) as JsonObject // prettier-ignore

describe('tokens', () => {
  test('of a service account, by an assertion that Google can verify', async () => {
    const google = tokens()
    const { fetch, sent } = answering(ok)
    await ask(fetch, { credentials: account, fetch: google.fetch })
    expect(sent[0]!.headers.get('authorization')).toBe(`Bearer ${TOKEN}`)
    expect(google.sent[0]!.url).toBe('https://oauth2.googleapis.com/token')
    const fields = new URLSearchParams(google.sent[0]!.body)
    expect(fields.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const assertion = fields.get('assertion')!
    const [header, claims, signature] = assertion.split('.') as [string, string, string]
    const signed = Buffer.from(`${header}.${claims}`)
    expect(verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
    expect(claimsOf(assertion)).toMatchObject({
      iss: account['client_email'],
      aud: account['token_uri'],
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    })
  })

  test('are sent to no address without encryption', async () => {
    const google = tokens()
    const credentials = { ...account, token_uri: 'http://tokens.example/' }
    await expect(ask(answering(ok).fetch, { credentials, fetch: google.fetch })).rejects.toThrow(
      'token_uri that is no HTTPS address',
    )
    expect(google.sent).toEqual([])
  })

  test('of the file of a user, which gcloud writes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gcloud-'))
    const file = join(folder, 'adc.json')
    await writeFile(file, JSON.stringify({ type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: REFRESH })) // prettier-ignore
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', file)
    const google = tokens()
    await ask(answering(ok).fetch, { fetch: google.fetch })
    expect(Object.fromEntries(new URLSearchParams(google.sent[0]!.body))).toEqual({
      client_id: 'c',
      client_secret: 's',
      refresh_token: REFRESH,
      grant_type: 'refresh_token',
    })
    await rm(folder, { recursive: true })
  })

  test('of another identity, which acts as a service account', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'wif-'))
    const file = join(folder, 'token')
    await writeFile(file, '{"id_token":"subject"}')
    const google = answering(
      () => Response.json({ access_token: 'federated', expires_in: 3600 }),
      () => Response.json({ accessToken: TOKEN, expireTime: '2099-01-01T00:00:00Z' }),
    )
    const credentials: JsonObject = {
      type: 'external_account',
      audience:
        '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: 'https://sts.googleapis.com/v1/token',
      service_account_impersonation_url: 'https://iamcredentials.googleapis.com/v1/x:generateAccessToken', // prettier-ignore
      credential_source: { file, format: { type: 'json', subject_token_field_name: 'id_token' } },
    }
    const { fetch, sent } = answering(ok)
    await ask(fetch, { credentials, fetch: google.fetch })
    expect(Object.fromEntries(new URLSearchParams(google.sent[0]!.body))).toMatchObject({
      audience: credentials['audience'],
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'subject',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    expect(google.sent[1]!.headers.get('authorization')).toBe('Bearer federated')
    expect(sent[0]!.headers.get('authorization')).toBe(`Bearer ${TOKEN}`)
    const far = { ...credentials, token_url: 'http://evil.example/token' }
    await expect(ask(fetch, { credentials: far, fetch: google.fetch })).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' }) // prettier-ignore
    expect(google.sent).toHaveLength(2)
    await rm(folder, { recursive: true })
  })

  test('of the metadata server, where there is no file', async () => {
    const google = tokens()
    await ask(answering(ok).fetch, { fetch: google.fetch })
    expect(google.sent[0]!.url).toBe(
      'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token',
    )
    expect(google.sent[0]!.headers.get('metadata-flavor')).toBe('Google')
  })

  test('are shared by all models, renewed before they end, once for concurrent calls', async () => {
    let asked = 0
    const token = async () => ({ token: `t${++asked}`, expiresAt: Date.now() + (asked === 1 ? 60_000 : 3_600_000) }) // prettier-ignore
    const { fetch, sent } = answering(ok)
    const provider = vertexWith({ ...place, token })
    const models = ['gemini-2.5-pro', 'gemini-2.5-flash'].map((id) => llm({ model: provider(id), config: { fetch } })) // prettier-ignore
    await Promise.all(models.map((model) => model.generate('a')))
    expect(asked).toBe(1)
    await models[0]!.generate('b') // the first one has a minute left, which is too little
    await models[1]!.generate('c')
    expect(asked).toBe(2)
    expect(sent.at(-1)!.headers.get('authorization')).toBe('Bearer t2')
  })

  test('that were refused are replaced once', async () => {
    let asked = 0
    const token = async () => ({ token: `t${++asked}` })
    const refused = (): Response => Response.json({ error: { code: 401, status: 'UNAUTHENTICATED', message: 'No' } }, { status: 401 }) // prettier-ignore
    const first = answering(refused, ok)
    expect((await ask(first.fetch, { token })).text).toBe('Hello')
    const second = answering(refused)
    await expect(ask(second.fetch, { token })).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' }) // prettier-ignore
    expect(second.sent).toHaveLength(2)
  })

  test('that were refused are replaced for each request that had sent them', async () => {
    let asked = 0
    const token = async () => ({ token: `t${++asked}` })
    const refused = (): Response => Response.json({ error: { code: 401, status: 'UNAUTHENTICATED', message: 'No' } }, { status: 401 }) // prettier-ignore
    const { fetch, sent } = answering(refused, refused, refused, ok)
    const model = llm({
      model: vertexWith({ ...place, token })('gemini-2.5-pro'),
      config: { fetch },
    })
    const turns = await Promise.all(['a', 'b', 'c'].map((text) => model.generate(text)))
    expect(turns.map(({ text }) => text)).toEqual(['Hello', 'Hello', 'Hello'])
    expect(sent.slice(3).map(({ headers }) => headers.get('authorization'))).toEqual(
      Array(3).fill('Bearer t2'),
    )
  })

  test('are asked for again after a function that throws', async () => {
    let asked = 0
    const token = () => {
      if (++asked === 1) throw new Error('not ready')
      return Promise.resolve({ token: 'late' })
    }
    const { fetch } = answering(ok)
    const model = llm({ model: vertexWith({ ...place, token })('gemini-2.5-pro'), config: { fetch, retryStrategy: new NoRetry() } }) // prettier-ignore
    await expect(model.generate('a')).rejects.toThrow('not ready')
    expect((await model.generate('b')).text).toBe('Hello')
  })

  test('in config.apiKey are sent as they are', async () => {
    const { fetch, sent } = answering(ok)
    await llm({ model: vertex('gemini-2.5-pro', place), config: { fetch, apiKey: 'mine' } }).generate('Hi') // prettier-ignore
    expect(sent[0]!.headers.get('authorization')).toBe('Bearer mine')
  })
})

describe('requests', () => {
  const at = 'https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/publishers' // prettier-ignore

  test('Gemini through generateContent', async () => {
    const { fetch, sent } = answering(ok)
    await ask(fetch, { fetch: tokens().fetch })
    expect(sent[0]!.url).toBe(`${at}/google/models/gemini-2.5-pro:generateContent`)
    expect(JSON.parse(sent[0]!.body)).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }) // prettier-ignore
  })

  test('Claude through rawPredict, with its version in the body and no model', async () => {
    const { fetch, sent } = answering(() => Response.json(claude))
    await ask(fetch, { fetch: tokens().fetch }, 'claude-sonnet-4-5@20250929')
    expect(sent[0]!.url).toBe(`${at}/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict`)
    expect(JSON.parse(sent[0]!.body)).toEqual({
      anthropic_version: 'vertex-2023-10-16',
      max_tokens: 64000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    })
    const config = { fetch, apiKey: 'k', retryStrategy: new NoRetry() }
    await llm({ model: vertex('claude-sonnet-4-5', place), config }).stream('Hi').turn
    expect(sent[1]!.url).toBe(`${at}/anthropic/models/claude-sonnet-4-5:streamRawPredict`)
    expect(JSON.parse(sent[1]!.body)).toMatchObject({ stream: true })
  })

  test.each([
    ['global', 'https://aiplatform.googleapis.com/'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com/'],
    ['us-east5', 'https://us-east5-aiplatform.googleapis.com/'],
  ])('the address of %s is %s', async (location, origin) => {
    const { fetch, sent } = answering(ok)
    await ask(fetch, { location, fetch: tokens().fetch })
    expect(sent[0]!.url.startsWith(origin)).toBe(true)
    expect(llm({ model: vertex('gemini-2.5-pro', { ...place, location }) }).model.region).toBe(location) // prettier-ignore
  })

  test('without a project or location nothing is sent, and no token is asked for', async () => {
    const google = tokens()
    const { fetch, sent } = answering(ok)
    const model = vertexWith({ fetch: google.fetch })('gemini-2.5-pro')
    await expect(llm({ model, config: { fetch } }).generate('Hi')).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      message: expect.stringContaining('no project'),
    })
    expect([...google.sent, ...sent]).toEqual([])
    expect(() => llm({ model: vertex('x', { project: 'a/../b', location: 'eu' }) })).toThrow(/project/) // prettier-ignore
  })

  test('tokens are counted where the model is', async () => {
    const { fetch, sent } = answering(() => Response.json({ totalTokens: 7, input_tokens: 7 }))
    for (const id of ['gemini-2.5-pro', 'claude-sonnet-4-5'])
      expect(await countTokens({ model: vertex(id, place), config: { fetch, apiKey: 'k' } }, 'Hi')).toBe(7) // prettier-ignore
    expect(sent.map(({ url }) => url)).toEqual([
      `${at}/google/models/gemini-2.5-pro:countTokens`,
      `${at}/anthropic/models/count-tokens:rawPredict`,
    ])
  })
})

test('secrets are in no error, reference, address or log, whatever Google or a service says', async () => {
  const logs: unknown[] = []
  for (const name of ['log', 'warn', 'error', 'debug', 'info'] as const)
    vi.spyOn(console, name).mockImplementation((...args) => void logs.push(args))
  const user = { type: 'authorized_user', client_id: 'c', client_secret: REFRESH, refresh_token: REFRESH } // prettier-ignore
  const echo = (): Response => Response.json({ error: { message: `Bad ${TOKEN}`, status: TOKEN } }, { status: 403 }) // prettier-ignore
  const { fetch, sent } = answering(echo)
  const failing = (options: VertexOptions): Promise<unknown> => ask(fetch, options).catch((error: unknown) => error) // prettier-ignore
  const errors = [
    await failing({ credentials: account, fetch: tokens().fetch }),
    await failing({ credentials: user, fetch: answering(() => new Response(REFRESH, { status: 400 })).fetch }), // prettier-ignore
    await failing({ credentials: user, fetch: answering(() => new Response(`{"access_token":"${TOKEN}`)).fetch }), // prettier-ignore
    await failing({ credentials: { ...account, private_key: `${pem.slice(0, 200)}` }, fetch: tokens().fetch }), // prettier-ignore
  ]
  for (const error of errors) expect(error).toBeInstanceOf(Error)
  const model = vertexWith({ ...place, credentials: account })('gemini-2.5-pro')
  const shown = [...errors, model, model.provider, logs, sent.map(({ url }) => url)]
    .map((value) => `${inspect(value, { depth: 20 })} ${JSON.stringify(value)}`)
    .join('\n')
  for (const secret of [TOKEN, REFRESH, pem.slice(60, 120)]) expect(shown).not.toContain(secret)
  vi.restoreAllMocks()
})
