import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { crashtest, printed, problems } from './crashtest-kit.ts'

const timeout = 120_000
/** Steps of a program, without their numbers. */
async function stepsOf(program: string, args: readonly string[] = []): Promise<string[]> {
  const result = printed(await crashtest(program, ['--json', '--max-points', '1', ...args]))
  return result.steps.map(({ name }) => name)
}

/** A server of this machine, which is no part of the world module. */
async function localServer(): Promise<{ readonly url: string; readonly seen: string[] }> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const names = Object.keys(request.headers).filter((name) => name.startsWith('x-'))
      seen.push(`${request.method} ${request.url} ${names.join()} ${body}`.trim())
      if (request.url === '/moved') response.writeHead(307, { location: '/target' }).end()
      else response.writeHead(200, { 'x-served': 'yes' }).end(`${request.headers.host} ${body}`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

test(
  'fetch, http and https are seen in every form of call, imported or required',
  { timeout },
  async () => {
    const steps = await stepsOf(`
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import http, { get } from 'node:http'
import https, { request } from 'node:https'
const read = (make) => new Promise((resolve, reject) => {
  make(async (response) => {
    let text = ''
    for await (const chunk of response) text += chunk
    resolve(text)
  }).on('error', reject)
})
const ok = JSON.stringify({ ok: true })
assert.equal(await (await fetch(new Request('https://a.test/1?q=1', { method: 'PATCH', body: 'x' }))).text(), ok)
assert.equal((await fetch('https://a.test/1')).url, 'https://a.test/1')
assert.equal(await read((on) => get('http://a.test/2', on)), ok)
assert.equal(await read((on) => https.get(new URL('https://a.test:8443/3'), { headers: { a: 'b' } }, on)), ok)
assert.equal(await read((on) => request({ host: 'a.test', path: '/4', method: 'POST', agent: new https.Agent({ keepAlive: true }) }, on).end('x')), ok)
assert.equal(await read((on) => createRequire(import.meta.url)('https').request('https://a.test/5', { method: 'DELETE' }, on).end()), ok)
assert.equal(await read((on) => http.request({ protocol: 'http:', hostname: 'a.test', port: 81, path: '/6', headers: ['host', 'a.test:81', 'a', 'b'] }, on).end()), ok)
`)
    expect(steps).toEqual([
      'PATCH https://a.test/1?q=1',
      'GET https://a.test/1',
      'GET http://a.test/2',
      'GET https://a.test:8443/3',
      'POST https://a.test/4',
      'DELETE https://a.test/5',
      'GET http://a.test:81/6',
    ])
  },
)

test(
  'a server of this machine gets the request as it was, and redirects are requests',
  { timeout },
  async () => {
    const { url, seen } = await localServer()
    const steps = await stepsOf(`
import assert from 'node:assert/strict'
const response = await fetch('${url}/moved', { method: 'POST', body: 'hello', headers: { 'x-own': '1' } })
assert.equal(await response.text(), '${new URL(url).host} hello')
assert.equal(response.headers.get('x-served'), 'yes')
`)
    expect(steps).toEqual([`POST ${url}/moved`, `POST ${url}/target`])
    expect(seen.slice(0, 2)).toEqual(['POST /moved x-own hello', 'POST /target x-own hello'])
  },
)

test('streams arrive while they are written, also of a model', { timeout }, async () => {
  const program = `
import assert from 'node:assert/strict'
const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
const headers = { 'content-type': 'application/json' }
const response = await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body, headers })
assert.equal(response.headers.get('content-type').split(';')[0], 'text/event-stream')
let text = ''
for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) text += chunk
assert.match(text, /Good/)
assert.match(text, /\\[DONE\\]/)
const anthropic = await fetch('https://api.anthropic.com/v1/messages', { method: 'POST', headers, body: JSON.stringify({
  model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Good day' }, { role: 'user', content: 'Ho' }] }) })
assert.equal((await anthropic.json()).content[0].name, 'refund')
const read = (await fetch('https://slow.test/events')).body.getReader()
const first = await read.read()
assert.equal(new TextDecoder().decode(first.value), 'one')
await fetch('https://slow.test/go', { method: 'POST' }) // the stream is open while this is answered
assert.equal(new TextDecoder().decode((await read.read()).value), 'two')
`
  const world = `export default () => {
  let go
  return (request) => {
    if (request.method === 'POST') return go(), new Response('')
    const gone = new Promise((resolve) => (go = resolve))
    return new Response(new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('one'))
        await gone
        controller.enqueue(new TextEncoder().encode('two'))
        controller.close()
      },
    }))
  }
}`
  const script = '["Good day", { "call": "refund", "arguments": { "order": "O-7" } }]'
  const result = printed(
    await crashtest(program, ['--json', '--model-script', 'script.json'], {
      'world.js': world,
      'script.json': script,
    }),
  )
  expect(problems(result)).toEqual(['doubled after 4'])
  expect(result.points.every(({ isReached, ending }) => isReached && ending === 'ended')).toBe(true)
})

test(
  'Node children are seen, with an environment of their own too, and die with the program',
  { timeout },
  async () => {
    const result = printed(
      await crashtest(
        `
import { execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
const env = { PATH: process.env.PATH }
await once(spawn(process.execPath, ['child.js', '1'], { env }), 'exit')
await once(fork('child.js', ['2']), 'exit')
execFileSync(process.execPath, ['child.js', '3'], { env })
await once(spawn(process.execPath, ['child.js', '4'], { detached: true }), 'exit')
`,
        ['--json', '--max-points', '3'],
        { 'child.js': `await fetch('https://a.test/' + process.argv[2], { method: 'POST' })` },
      ),
    )
    expect(result.steps.map(({ name }) => name)).toEqual(
      [1, 2, 3, 4].map((number) => `POST https://a.test/${number}`),
    )
    // The program begins anew each time, so what was done before the crash is done twice.
    expect(result.points).toHaveLength(3)
    for (const { step, when, effects } of result.points) {
      const done = when === 'before' ? step.number - 1 : step.number
      expect(effects.map(({ times }) => times)).toEqual(
        [1, 2, 3, 4].map((n) => (n <= done ? 2 : 1)),
      )
    }
  },
)

test(
  'requests that are sent at the same time reach the world one after another',
  { timeout },
  async () => {
    const program = `await Promise.all([1, 2, 3].map((n) => fetch('https://a.test/' + n, { method: 'POST' })))`
    const result = printed(await crashtest(program, ['--json']))
    const times = result.points.map(({ step, when, effects }) => [
      `${when} ${step.number}`,
      effects.map((effect) => effect.times).join(),
    ])
    expect(Object.fromEntries(times)).toMatchObject({
      'before 1': '1,1,1',
      'after 1': '2,1,1',
      'after 2': '2,2,1',
      'after 3': '2,2,2',
    })
  },
)

test('what is ignored is no step, and does not leave this machine', { timeout }, async () => {
  const program = `
import assert from 'node:assert/strict'
assert.equal((await fetch('https://log.example.com/events', { method: 'POST' })).status, 204)
await fetch('https://a.test/1', { method: 'POST' })
`
  const steps = await stepsOf(program, ['--ignore', 'POST https://*.example.com/*'])
  expect(steps).toEqual(['POST https://a.test/1'])
})

test(
  'a connection that is no request is refused, unless it stays on this machine',
  { timeout },
  async () => {
    const { url } = await localServer()
    const local = `
import net from 'node:net'
await new Promise((resolve, reject) => net.connect(${new URL(url).port}, '127.0.0.1').on('connect', function () { this.destroy(); resolve() }).on('error', reject))
await fetch('https://a.test/1', { method: 'POST' })
`
    expect(await stepsOf(local)).toEqual(['POST https://a.test/1'])
    const remote = `
import { connect } from 'node:tls'
await new Promise((resolve) => connect(5432, 'db.example.com').on('error', resolve))
await fetch('https://a.test/1', { method: 'POST' })
`
    const { code, stderr } = await crashtest(remote)
    expect(stderr).toContain('The program wants to reach another machine: db.example.com:5432')
    expect(stderr).toContain('allow it with --allow-host db.example.com.')
    expect(code).toBe(2)
  },
)
