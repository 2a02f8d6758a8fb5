/** The official `google-auth-library` next to ours: the same credentials, the same requests for tokens. */
import { GoogleAuth, JWT } from 'google-auth-library'
import { llm, NoRetry } from '@skein/ai'
import { vertexWith, type GoogleCredentials } from '@skein/ai/vertex'
import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const servers: Server[] = []
afterEach(() => {
  vi.unstubAllEnvs()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** An endpoint that notes each request for a token and gives one. */
async function tokenEndpoint(): Promise<{ url: string; sent: Sent[] }> {
  const sent: Sent[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      sent.push({
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body,
      })
      response.writeHead(200, { 'content-type': 'application/json', 'metadata-flavor': 'Google' })
      const expireTime = '2099-01-01T00:00:00Z'
      response.end(
        JSON.stringify({
          access_token: 't',
          expires_in: 3600,
          token_type: 'Bearer',
          accessToken: 't',
          expireTime,
        }),
      )
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent }
}

/** Asks a model once, so that a token is asked for; the model answers 400. */
async function ours(credentials?: GoogleCredentials): Promise<string | null> {
  let authorization: string | null = null
  const fetch = async (_url: string, { headers }: RequestInit): Promise<Response> => {
    authorization = new Headers(headers).get('authorization')
    return new Response('{}', { status: 400 })
  }
  const model = vertexWith({ project: 'p', location: 'eu', credentials })('gemini-2.5-pro')
  const config = { fetch, retryStrategy: new NoRetry() }
  await expect(llm({ model, config }).generate('Hi')).rejects.toMatchObject({
    code: 'INVALID_REQUEST',
  })
  return authorization
}

const partsOf = (jwt: string): [object, Record<string, number>] =>
  jwt
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as never) as never

const fieldsOf = (body: string): Record<string, string> =>
  Object.fromEntries(new URLSearchParams(body))

describe('the request for a token', () => {
  test('of a service account: grant, header and claims of the assertion', async () => {
    const { url, sent } = await tokenEndpoint()
    const credentials = {
      type: 'service_account',
      client_email: 'robot@p.iam.gserviceaccount.com',
      private_key: pem,
      private_key_id: 'key-1',
      token_uri: url,
    }
    expect(await ours(credentials)).toBe('Bearer t')
    const [mine] = sent.map(({ body }) => fieldsOf(body))
    const [header, { iat, exp, ...claims }] = partsOf(mine!['assertion']!)
    const [head, body, signature] = mine!['assertion']!.split('.') as [string, string, string]
    expect(
      verify(
        'RSA-SHA256',
        Buffer.from(`${head}.${body}`),
        publicKey,
        Buffer.from(signature, 'base64url'),
      ),
    ).toBe(true)
    // The library asks Google wherever the file says, so its own request is caught.
    const theirs: { body: string }[] = []
    const client = new JWT({
      email: credentials.client_email,
      key: pem,
      keyId: 'key-1',
      scopes: [SCOPE],
    })
    vi.stubGlobal('fetch', async (_input: unknown, init?: { body?: unknown }) => {
      theirs.push({ body: String(init?.body) })
      return Response.json({ access_token: 't', expires_in: 3600 })
    })
    client.transporter.defaults.fetchImplementation = globalThis.fetch
    await client.getAccessToken()
    vi.unstubAllGlobals()
    const other = fieldsOf(theirs[0]!.body)
    const [theirHeader, { iat: theirIat, exp: theirExp, ...theirClaims }] = partsOf(
      other['assertion']!,
    )
    expect(Object.keys(mine!).toSorted()).toEqual(Object.keys(other).toSorted())
    expect(mine!['grant_type']).toBe(other['grant_type'])
    // Google documents the type and the id of the key; the library leaves them out.
    expect(header).toEqual({ ...theirHeader, typ: 'JWT', kid: 'key-1' })
    expect({ ...claims, aud: '' }).toEqual({ ...theirClaims, aud: '' })
    expect(exp! - iat!).toBe(theirExp! - theirIat!)
  })

  test('of an external account is the same', async () => {
    const { url, sent } = await tokenEndpoint()
    const folder = await mkdtemp(join(tmpdir(), 'wif-'))
    const file = join(folder, 'token')
    await writeFile(file, 'subject-token')
    const credentials = {
      type: 'external_account' as const,
      audience:
        '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${url}/v1/token`,
      credential_source: { file },
    }
    expect(await ours(credentials)).toBe('Bearer t')
    await new GoogleAuth({ credentials: credentials as never, scopes: [SCOPE] }).getAccessToken()
    const [mine, theirs] = sent.map(({ method, path, body }) => ({
      method,
      path,
      fields: fieldsOf(body),
    }))
    expect(mine).toEqual(theirs)
    await rm(folder, { recursive: true })
  })

  test('to the metadata server is the same', async () => {
    const { url, sent } = await tokenEndpoint()
    vi.stubEnv('GCE_METADATA_HOST', url.slice('http://'.length))
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '')
    vi.stubEnv('HOME', '/does/not/exist')
    expect(await ours()).toBe('Bearer t')
    const [mine] = sent.splice(0)
    await new GoogleAuth({ scopes: [SCOPE], projectId: 'p' }).getAccessToken()
    const theirs = sent.find(({ path }) => path.includes('/token'))
    const pathOf = (path = ''): string => path.split('?')[0]!
    expect([mine!.method, pathOf(mine!.path), mine!.headers['metadata-flavor']]).toEqual([
      theirs?.method,
      pathOf(theirs?.path),
      theirs?.headers['metadata-flavor'],
    ])
  })
})
