import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from './browser.ts'
import { bundle, platforms } from './portability/bundle.ts'
import { root } from './workspace.ts'

let browser: Browser
let script = ''

const server = createServer((request, response) => {
  const isScript = request.url === '/entry.js'
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
  response.end(isScript ? script : '<!doctype html><title>Skein</title><p id="word">yarn</p>')
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  browser = await launchBrowser()
  // The first start unpacks 200 MB.
}, 90_000)

afterAll(async () => {
  await browser?.close()
  server.close()
})

const address = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

test('a browser shows a page of this machine', async () => {
  const page = await browser.newPage()
  await page.goto(address())
  expect(await page.title()).toBe('Skein')
  expect(await page.textContent('#word')).toBe('yarn')
  expect(await page.evaluate('typeof process')).toBe('undefined')
})

test('@skein/base, bundled, works in a real browser', async () => {
  script = (await bundle(`export * from '@skein/base'`, platforms[0]!, root)).text
  const page = await browser.newPage()
  await page.goto(address())
  const result: unknown = await page.evaluate(`
    import('/entry.js').then(({ SseDecoder, canonicalJson, sha256Hex, encodeBase64 }) => ({
      hash: sha256Hex('abc'),
      json: canonicalJson({ b: 1, a: 'ü' }),
      base64: encodeBase64(new Uint8Array([251, 255, 0])),
      events: new SseDecoder().push(new TextEncoder().encode('data: one\\n\\ndata: two\\n\\n')).map((event) => event.data),
    }))`)
  expect(result).toEqual({
    hash: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    json: '{"a":"ü","b":1}',
    base64: '+/8A',
    events: ['one', 'two'],
  })
})
