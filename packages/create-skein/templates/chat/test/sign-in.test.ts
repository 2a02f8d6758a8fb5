import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createPageServer } from '../server/page-server.ts'
import { createTokens } from '../server/tokens.ts'
import { openUsers } from '../server/users.ts'

const folder = mkdtempSync(join(tmpdir(), 'page-'))
const tokens = createTokens('a secret of this test, 32 characters')
const users = openUsers(join(folder, 'users.json'))

/** In place of `skein serve`: answers with the path and the user of the token. */
const agents = createServer(async (request, response) => {
  const token = (request.headers.authorization ?? '').replace('Bearer ', '')
  response.end(`${request.url} ${await tokens.userOf(token, 'agents')}`)
})
let server: Server
let page = ''

before(async () => {
  writeFileSync(join(folder, 'index.html'), '<p>The page</p>')
  await users.add('ada', 'right')
  server = createPageServer({ folder, agents: await listen(agents), tokens, users })
  page = await listen(server)
})
after(() => {
  for (const one of [server, agents]) one.close()
  rmSync(folder, { recursive: true })
})

async function listen(one: Server): Promise<string> {
  await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(one.address() as AddressInfo).port}`
}

function signIn(name: string, password: string, origin = page): Promise<Response> {
  const body = JSON.stringify({ name, password })
  return fetch(`${page}/session`, { method: 'POST', headers: { origin }, body })
}

function getToken(cookie: string, origin = page): Promise<Response> {
  return fetch(`${page}/session/token`, { method: 'POST', headers: { origin, cookie } })
}

test('a user who signs in gets a token, and the agents see who it is', async () => {
  const signedIn = await signIn('ada', 'right')
  assert.equal(signedIn.status, 204)
  const cookie = signedIn.headers.get('set-cookie') ?? ''
  assert.match(cookie, /HttpOnly; SameSite=Strict/)
  const { token } = (await (await getToken(cookie.split(';')[0]!)).json()) as { token: string }
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${page}/agents/assistant/chat?x=1`, { headers })
  assert.equal(await answer.text(), '/agents/assistant/chat?x=1 ada')
})

test('no token without the right password, for another site, or with a token of the other purpose', async () => {
  assert.equal((await signIn('ada', 'wrong')).status, 401)
  assert.equal((await signIn('bob', 'right')).status, 401)
  assert.equal((await signIn('__proto__', 'right')).status, 401)
  assert.equal((await signIn('ada', 'right', 'https://evil.example')).status, 403)
  assert.equal((await getToken('')).status, 401)
  const session = await tokens.sign('ada', 'session')
  assert.equal((await getToken(`session=${session}`, 'https://evil.example')).status, 403)
  assert.equal((await getToken(`session=${await tokens.sign('ada', 'agents')}`)).status, 401)
  assert.equal((await getToken(`session=${await tokens.sign('gone', 'session')}`)).status, 401)
  assert.equal(await tokens.userOf(session, 'agents'), undefined)
})

test('after ten wrong passwords a name has to wait', async () => {
  await users.add('eve', 'right')
  for (let attempt = 0; attempt < 10; attempt++) assert.equal(await users.check('eve', 'no'), false)
  assert.equal(await users.check('eve', 'right'), false)
  assert.equal(await users.check('ada', 'right'), true)
})

test('only the files of the page are served, with a policy that keeps it from loading others', async () => {
  const index = await fetch(page)
  assert.equal(await index.text(), '<p>The page</p>')
  assert.match(index.headers.get('content-security-policy') ?? '', /default-src 'self'/)
  for (const path of ['/../package.json', '/%2e%2e/package.json', '/nothing', '/threads'])
    assert.equal((await fetch(page + path)).status, 404, path)
})
