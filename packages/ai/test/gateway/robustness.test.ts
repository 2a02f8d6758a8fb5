import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { image, NoRetry } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { gateway, servedModel } from '@skein/ai/gateway'
import { openai } from '@skein/ai/openai'
import { fails, says, scripted, vendorServer, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { hi, post } from './clients.ts'
import { serveFetch } from './serve-fetch.ts'

const chat = { model: 'm', messages: hi }

test('parameter names of any script do not cost the client its answer', async () => {
  const vendor = vendorServer(() => says('ok'))
  const config = { apiKey: 'k', fetch: vendor.fetch }
  const m = servedModel({ model: anthropic('claude-sonnet-4-5'), config })
  const names = { '✓': 1, ключ: 1, 'a\nb': 1, '\ud800': 1, ['x'.repeat(5000)]: 1 }
  for (const stream of [false, true]) {
    const body = { ...chat, ...names, stream }
    const response = await post(gateway({ models: { m } }), '/v1/chat/completions', body)
    expect(response.status).toBe(200)
    expect(response.headers.get('skein-dropped-params')).toMatch(/^%E2%9C%93, %D0%BA/)
    expect(await response.text()).toContain('ok')
  }
})

describe('an onError that fails', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('The log is full.')
      },
    ],
    ['rejects', () => Promise.reject(new Error('The log is full.')) as never],
  ])('%s: the client is answered, and its place is free again', async (_, onError) => {
    // prettier-ignore
    const handler = gateway({
      models: { m: scripted(() => [says('part'), fails('Broken.')]), bad: scripted(() => fails()) },
      keys: [{ key: 'k', name: 'a', limits: { concurrency: 1 } }],
      onError,
    })
    const headers = { 'x-api-key': 'k' }
    for (let round = 0; round < 3; round++) {
      const path = '/v1/chat/completions'
      expect((await post(handler, path, { ...chat, model: 'bad' }, headers)).status).toBe(500)
      const streamed = await post(handler, path, { ...chat, stream: true }, headers)
      expect(streamed.status).toBe(200)
      expect(await streamed.text()).toContain('Broken.')
    }
    expect((await post(handler, '/v1/messages', chat)).status).toBe(401)
  })
})

test.each(['/api/v1/llm', '/v1/v1beta', '/v1beta', '/a/v1/models/x'])(
  'a gateway mounted below %s finds its endpoints',
  async (prefix) => {
    const handler = gateway({ models: { m: scripted(() => says('ok')), 'a/v1/b': scripted([]) } })
    expect((await post(handler, `${prefix}/v1/chat/completions`, chat)).status).toBe(200)
    const get = (path: string) => handler(new Request(`http://g.test${prefix}${path}`))
    expect((await get('/v1/models')).status).toBe(200)
    expect((await get('/v1/models/m')).status).toBe(200)
    expect((await get('/v1/models/a/v1/b')).status).toBe(200)
    expect((await get('/v1/nothing')).status).toBe(404)
  },
)

test.each([
  ['/v1/chat/completions', { ...chat, n: 2 }],
  ['/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { candidateCount: 2 } }], // prettier-ignore
])('%s: several answers at once are refused, not answered with one', async (path, body) => {
  const model = scripted(() => says('ok'))
  const refused = await post(gateway({ models: { m: model } }), path, body)
  expect(refused.status).toBe(400)
  expect(await refused.text()).toMatch(/"(n|candidateCount)\\"/)
  expect(model.requests).toEqual([])
  const one = await post(gateway({ models: { m: model } }), '/v1/chat/completions', { ...chat, n: 1 }) // prettier-ignore
  expect(one.status).toBe(200)
})

describe('a vendor that thinks in silence', () => {
  /** A vendor that answers only when the test lets it, without a byte before. */
  async function silentVendor(fail = false) {
    let answer = (): void => {}
    const released = new Promise<void>((resolve) => (answer = resolve))
    const server = createServer((request, response) => {
      request.resume()
      void released.then(() => {
        if (fail) {
          response.writeHead(500, { 'content-type': 'application/json' })
          return void response.end('{"error":{"message":"Broken."}}')
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const chunk = (delta: object, finish_reason: string | null) =>
          `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
        response.end(`${chunk({ content: 'At last.' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    return {
      baseUrl: `http://127.0.0.1:${port}`,
      answer,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections()
        server.close()
        await once(server, 'close')
      },
    }
  }

  test.each([
    ['/v1/chat/completions', /^: ping/],
    ['/v1/responses', /^: ping/],
    ['/v1/messages', /^event: ping\ndata: \{"type":"ping"\}/],
    ['/v1beta/models/m:streamGenerateContent?alt=sse', /^: ping/],
  ])('%s: headers and pings come before the first word', async (path, ping) => {
    await using vendor = await silentVendor()
    const config = { apiKey: 'k', baseUrl: vendor.baseUrl }
    const m = servedModel({ model: openai('gpt-5', { api: 'chat' }), config })
    await using server = await serveFetch(gateway({ models: { m }, pingMs: 40 }))
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
    const body = { model: 'm', messages: hi, input: 'Hi', contents, stream: true, max_tokens: 5 }
    const response = await fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(body) }) // prettier-ignore
    expect(response.status).toBe(200)
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      if ((text.match(/^(: ping|data: .*"ping")/gm) ?? []).length > 3) vendor.answer()
    }
    expect(text).toMatch(ping)
    expect(text).toContain('At last.')
  })

  test('a failure after the headers is told in the stream, a quick one by its status', async () => {
    for (const isQuick of [false, true]) {
      await using vendor = await silentVendor(true)
      if (isQuick) vendor.answer()
      const { baseUrl } = vendor
      const config = { apiKey: 'k', baseUrl, retryStrategy: new NoRetry() }
      const m = servedModel({ model: openai('gpt-5', { api: 'chat' }), config })
      const handler = gateway({ models: { m }, pingMs: isQuick ? 60_000 : 40 })
      const response = await post(handler, '/v1/chat/completions', { ...chat, stream: true })
      expect(response.status).toBe(isQuick ? 500 : 200)
      vendor.answer()
      expect(await response.text()).toContain('Broken.')
    }
  })

  test('a client that leaves during the silence ends the request to the vendor', async () => {
    const model = scripted(() => [waits(Infinity)])
    const handler = gateway({ models: { m: model }, pingMs: 10 })
    const response = await post(handler, '/v1/chat/completions', { ...chat, stream: true })
    await response.body!.cancel()
    await expect.poll(() => model.requests[0]?.signal.aborted).toBe(true)
  })
})

test('images by name: what is wrong is refused, parameters reach the vendor', async () => {
  const sent: unknown[] = []
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    sent.push(JSON.parse(String(init.body)))
    return Response.json({ data: [{ b64_json: 'iVBORw0KGgo=' }], usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } }) // prettier-ignore
  }
  const p = image({ model: openai('gpt-image-1'), config: { apiKey: 'k', fetch } })
  const handler = gateway({ models: {}, images: { p } })
  const path = '/v1/images/generations'
  for (const wrong of [
    {},
    { model: 'p' },
    { model: 'p', prompt: '' },
    { model: 'p', prompt: 'x', stream: true },
    { model: 'p', prompt: 'x', response_format: 'url' },
    [],
  ])
    // prettier-ignore
    expect((await post(handler, path, wrong)).status).toBe(400)
  expect((await post(handler, path, { model: 'x', prompt: 'x' })).status).toBe(404)
  expect((await handler(new Request(`http://g.test${path}`))).status).toBe(405)
  expect(sent).toEqual([])
  const made = await post(handler, path, { model: 'p', prompt: 'a cat', n: 1, size: '1024x1024' })
  expect(await made.json()).toMatchObject({
    data: [{ b64_json: 'iVBORw0KGgo=' }],
    usage: { total_tokens: 3 },
  })
  expect(sent).toMatchObject([{ model: 'gpt-image-1', prompt: 'a cat', n: 1, size: '1024x1024' }])
})
