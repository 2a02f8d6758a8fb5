import { manualClock } from '@skein/base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StudioFiles } from '../../src/studio/studio-files.ts'
import { KEYS, startKit, type Kit } from './http-kit.ts'

const text = (body: string, type: string, isImmutable = false) => ({
  body: new TextEncoder().encode(body),
  type,
  etag: `"${body.length}"`,
  isImmutable,
})
const page = text('<!doctype html>', 'text/html; charset=utf-8')
const files = new Map([
  ['index.html', page],
  ['assets/a-1.js', text('let a', 'text/javascript', true)],
])
const studio: StudioFiles = { get: (path) => files.get(path) }

const clock = manualClock(1_790_000_000_000)
const HOUR = 3_600_000
let kit: Kit
let inner: Kit
beforeAll(async () => {
  kit = await startKit({ http: { studio, clock, cors: { origins: ['http://app.localhost'] } } })
  inner = await startKit({ http: { studio, clock, prefix: '/api' } })
})
afterAll(() => Promise.all([kit.stop(), inner.stop()]))

const html = { accept: 'text/html,application/xhtml+xml' }

describe('the page', () => {
  test.each([
    ['', '/', 'studio/'],
    ['', '/studio', 'studio/'],
    ['/api', '/', 'api/studio/'],
    ['/api', '/api', 'api/studio/'],
    ['/api', '/api/', 'studio/'],
    ['/api', '/api/studio', 'studio/'],
  ])('with the prefix "%s" a browser at %s is sent to %s', async (prefix, path, location) => {
    const response = await (prefix === '' ? kit : inner).ask(
      undefined,
      'GET',
      path,
      undefined,
      html,
    )
    expect([response.status, response.headers.get('location')]).toEqual([302, location])
    // As the browser reads it, also behind a proxy that serves us below another path.
    for (const outside of ['', '/behind/a/proxy']) {
      const seen = new URL(location, `https://host.example${outside}${path}`)
      expect(seen.pathname).toBe(`${outside}${prefix}/studio/`)
    }
  })

  test('programs at the root, and a server without Studio, get the answer of an operation', async () => {
    expect((await kit.ask(undefined, 'GET', '/')).status).toBe(404)
    const plain = await startKit()
    for (const path of ['/', '/studio/', '/studio/assets/a-1.js'])
      expect((await plain.ask(undefined, 'GET', path, undefined, html)).status).toBe(404)
    await plain.stop()
  })

  test.each(['/studio/', '/studio/threads/01', '/studio/api', '/studio/%E4%B8%96'])(
    '%s is the page, without a key, with a policy that allows nothing from elsewhere',
    async (path) => {
      const response = await kit.ask(undefined, 'GET', path)
      expect([response.status, await response.text()]).toEqual([200, '<!doctype html>'])
      const { headers } = response
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
      expect(policy).not.toContain('unsafe')
      expect(policy).toContain("frame-ancestors 'none'")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cache-control')).toBe('no-cache')
    },
  )

  test('an asset is kept for ever, a missing one is not the page, and an unchanged one is not sent', async () => {
    const asset = await inner.ask(undefined, 'GET', '/api/studio/assets/a-1.js')
    expect([asset.headers.get('content-type'), await asset.text()]).toEqual([
      'text/javascript',
      'let a',
    ])
    expect(asset.headers.get('cache-control')).toContain('immutable')
    const again = await kit.ask(undefined, 'GET', '/studio/', undefined, {
      'if-none-match': '"15"',
    })
    expect([again.status, await again.text()]).toEqual([304, ''])
    const head = await kit.ask(undefined, 'HEAD', '/studio/')
    expect([head.status, await head.text()]).toEqual([200, ''])
    for (const path of ['/studio/assets/b.js', '/studio/%ff', '/studio/..%2f..%2fetc/pass.wd'])
      expect((await kit.ask(undefined, 'GET', path)).status, path).toBe(404)
    expect((await kit.ask(undefined, 'POST', '/studio/threads', {})).status).toBe(404)
  })
})

const own = { origin: 'http://localhost' }

async function signIn(key: string, headers: Record<string, string> = own, at: Kit = kit) {
  const response = await at.ask(undefined, 'POST', '/studio/session', { key }, headers)
  const set = response.headers.get('set-cookie') ?? ''
  return { response, set, cookie: set.split(';')[0]! }
}

describe('a session', () => {
  test('a key becomes a cookie that scripts cannot read and that does what the key does', async () => {
    const { response, set, cookie } = await signIn(KEYS.ada.key)
    expect(await response.json()).toMatchObject({
      tenant: 'acme',
      user: 'ada',
      isSignedIn: true,
      scopes: KEYS.ada.scopes,
      server: { name: 'Skein', prefix: '', playground: false, needsKey: true },
    })
    expect(set).toMatch(/^skein-studio=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    expect(set).not.toContain(KEYS.ada.key)
    expect(set).not.toContain(btoa(KEYS.ada.key).slice(0, 12))
    const me = await kit.ask(undefined, 'GET', '/studio/me', undefined, { cookie })
    expect(await me.json()).toMatchObject({ user: 'ada', isSignedIn: true })
    const made = await kit.ask(undefined, 'POST', '/threads', { agent: 'desk' }, { cookie, ...own })
    expect(await made.json()).toMatchObject({ tenant: 'acme', owner: 'ada' })
    // It opens nothing that the key does not open.
    expect((await kit.ask(undefined, 'GET', '/limits', undefined, { cookie })).status).toBe(403)
  })

  test('behind TLS the cookie belongs to this host alone', async () => {
    const { set, cookie } = await signIn(KEYS.ada.key, { origin: 'https://localhost' })
    expect(set).toMatch(/^__Host-skein-studio=[\w.-]+; Path=\/; Secure; HttpOnly; SameSite=Strict/)
    expect((await kit.ask(undefined, 'GET', '/studio/me', undefined, { cookie })).status).toBe(200)
  })

  test('below a prefix the cookie is sent there only', async () => {
    const response = await inner.ask(undefined, 'POST', '/api/studio/session', {
      key: KEYS.bob.key,
    })
    expect(response.headers.get('set-cookie')).toContain('; Path=/api; ')
  })

  test('a request with a key is nobody else, whatever cookie it has', async () => {
    const { cookie } = await signIn(KEYS.ada.key)
    const bob = await kit.ask('bob', 'GET', '/studio/me', undefined, { cookie })
    expect(await bob.json()).toMatchObject({ user: 'bob' })
    const headers = { cookie, authorization: 'Bearer wrong' }
    expect((await kit.ask(undefined, 'GET', '/studio/me', undefined, headers)).status).toBe(401)
  })

  test('pages of other origins cannot use it, also not those that may call with a key', async () => {
    const { cookie } = await signIn(KEYS.ada.key)
    const create = (headers: Record<string, string>) =>
      kit.ask(undefined, 'POST', '/threads', { agent: 'desk' }, { cookie, ...headers })
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'http://localhost:9999', 'sec-fetch-site': 'same-site' },
      { origin: 'null' },
      { origin: 'http://app.localhost', 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
      {},
    ]
    for (const headers of foreign)
      expect([401, 403], JSON.stringify(headers)).toContain((await create(headers)).status)
    for (const headers of [own, { 'sec-fetch-site': 'same-origin' }])
      expect((await create(headers)).status).toBe(201)
    const read = (headers: Record<string, string>) =>
      kit.ask(undefined, 'GET', '/threads', undefined, { cookie, ...headers })
    expect((await read({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' })).status).toBe(
      403,
    )
    expect((await read({ origin: 'http://app.localhost' })).status).toBe(401)
    expect((await read({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    // Nor can they sign somebody in or out.
    const evil = { origin: 'https://evil.example' }
    expect((await signIn(KEYS.bob.key, evil)).response.status).toBe(403)
    const out = await kit.ask(undefined, 'DELETE', '/studio/session', undefined, {
      cookie,
      ...evil,
    })
    expect(out.status).toBe(403)
  })

  test('signing in always makes another session, whatever cookie was there before', async () => {
    const first = await signIn(KEYS.bob.key)
    const second = await signIn(KEYS.ada.key, { ...own, cookie: first.cookie })
    expect(second.cookie).not.toBe(first.cookie)
    const me = await kit.ask(undefined, 'GET', '/studio/me', undefined, { cookie: second.cookie })
    expect(await me.json()).toMatchObject({ user: 'ada' })
    // Texts that this server has not made are no sessions.
    const [iv, sealed] = first.cookie.split('=')[1]!.split('.')
    for (const value of [
      '',
      'x',
      `${iv}.`,
      `${sealed}.${iv}`,
      `${iv}.${sealed!.slice(0, -4)}AAAA`,
    ]) {
      const headers = { cookie: `skein-studio=${value}` }
      const refused = await kit.ask(undefined, 'GET', '/studio/me', undefined, headers)
      expect(refused.status, value).toBe(401)
    }
  })

  test('it ends when the person signs out, also for copies of its cookie', async () => {
    const { cookie } = await signIn(KEYS.ada.key)
    const other = await signIn(KEYS.ada.key)
    const out = await kit.ask(undefined, 'DELETE', '/studio/session', undefined, { cookie, ...own })
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('skein-studio=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0'),
    ])
    const status = async (headers: Record<string, string>) =>
      (await kit.ask(undefined, 'GET', '/studio/me', undefined, headers)).status
    expect(await status({ cookie })).toBe(401)
    expect(await status({ cookie: other.cookie })).toBe(200)
  })

  test('it ends after twelve hours, and with its key', async () => {
    const { cookie } = await signIn(KEYS.ada.key)
    const status = async (of: Kit, value: string) =>
      (await of.ask(undefined, 'GET', '/studio/me', undefined, { cookie: value })).status
    const { key, ...rest } = KEYS.ada
    const soon = { ...rest, key, expiresAt: clock.now() + HOUR }
    const short = await startKit({ http: { clock, auth: { keys: [soon] } } })
    const begun = await signIn(key, own, short)
    expect(begun.set).toContain('Max-Age=3600')
    expect(await status(short, begun.cookie)).toBe(200)
    clock.advance(HOUR)
    expect(await status(short, begun.cookie)).toBe(401)
    expect(await status(kit, cookie)).toBe(200)
    clock.advance(11 * HOUR - 1)
    expect(await status(kit, cookie)).toBe(200)
    clock.advance(1)
    expect(await status(kit, cookie)).toBe(401)
    await short.stop()
  })

  test('it holds over a restart with the same keys, and with other keys it is nothing', async () => {
    const { cookie } = await signIn(KEYS.ada.key)
    const again = await startKit({ http: { clock } })
    const other = await startKit({ http: { clock, auth: { keys: [KEYS.ada] } } })
    const status = async (of: Kit) =>
      (await of.ask(undefined, 'GET', '/studio/me', undefined, { cookie })).status
    expect([await status(again), await status(other)]).toEqual([200, 401])
    await Promise.all([again.stop(), other.stop()])
  })

  test('keys cannot be guessed fast, and one address does not keep others out', async () => {
    const at = (address: string) =>
      startKit({ http: { clock }, connection: { address } }).then(async (one) => {
        const statuses: number[] = []
        for (let count = 0; count < 25; count++)
          statuses.push((await signIn(`wrong-key-${count}-0123456789`, own, one)).response.status)
        const right = (await signIn(KEYS.ada.key, own, one)).response
        await one.stop()
        return { statuses, right }
      })
    const { statuses, right } = await at('10.0.0.1')
    expect(statuses.filter((status) => status === 401).length).toBe(20)
    expect(statuses.at(-1)).toBe(429)
    expect([right.status, Number(right.headers.get('retry-after'))]).toEqual([429, 3])
    const hosts = await startKit({
      http: { clock, clientAddress: (request) => request.headers.get('x-real-ip') ?? '' },
    })
    for (let count = 0; count < 21; count++)
      await signIn('wrong-key-0123456789', { ...own, 'x-real-ip': '10.0.0.2' }, hosts)
    const blocked = await signIn(KEYS.ada.key, { ...own, 'x-real-ip': '10.0.0.2' }, hosts)
    const free = await signIn(KEYS.ada.key, { ...own, 'x-real-ip': '10.0.0.3' }, hosts)
    expect([blocked.response.status, free.response.status]).toEqual([429, 200])
    await hosts.stop()
  })

  test('without authentication everybody is the local person', async () => {
    const open = await startKit({ http: { auth: 'none', playground: true } })
    expect(await (await open.ask(undefined, 'GET', '/studio/me')).json()).toMatchObject({
      tenant: 'default',
      name: 'local',
      isSignedIn: false,
      server: { playground: true, needsKey: false },
    })
    await open.stop()
  })
})
