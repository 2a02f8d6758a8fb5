import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser } from '../../../../scripts/browser.ts'
import { serve, type Serving } from '../../src/index.ts'
import { defineEndpoint } from '@skein/runtime'
import { endpoints, KEYS, startKit, type Kit } from '../http/http-kit.ts'
import { buildWorld, type World } from '../http/world.ts'

/** What a page on another origin tries. Given the address of the server and ids that it guessed right. */
interface Target {
  readonly url: string
  readonly threadId: string
  readonly interruptId: string
}

/**
 * Runs in the page of the attacker. Returns what it could read of the server's answers: opaque answers and
 * errors are nothing.
 */
async function attack({ url, threadId, interruptId }: Target): Promise<readonly string[]> {
  const read: string[] = []
  const bodies: readonly (readonly [string, object])[] = [
    ['/threads', { agent: 'desk', message: 'PWNED' }],
    [`/threads/${threadId}/messages`, { text: 'PWNED' }],
    [`/approvals/${threadId}/${interruptId}`, { type: 'approve' }],
    [`/threads/${threadId}/terminate`, {}],
    [`/threads/${threadId}/erase`, {}],
    [`/threads/${threadId}/stop`, {}],
    ['/threads/import', { skein: 'thread' }],
    [
      '/agents/desk/chat',
      {
        id: 'pwned',
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'PWNED' }] }],
      },
    ],
    ['/v1/chat/completions', { model: 'desk', messages: [{ role: 'user', content: 'PWNED' }] }],
    ['/v1/responses', { model: 'desk', input: 'PWNED' }],
    [
      '/v1/messages',
      { model: 'desk', max_tokens: 9, messages: [{ role: 'user', content: 'PWNED' }] },
    ],
    [`/threads/${threadId}/x/orders`, { order: 'PWNED' }],
  ]
  const paths = [
    '/threads',
    `/threads/${threadId}/events`,
    `/threads/${threadId}/export`,
    '/approvals',
    '/agents',
    '/openapi.json',
    '/v1/models',
    `/threads/${threadId}/files/notes/a.txt`,
    `/threads/${threadId}/stream`,
  ]
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const attempt = async (name: string, work: () => Promise<string>): Promise<void> => {
    try {
      const text = await Promise.race([work(), wait(1500).then(() => '')])
      if (text !== '') read.push(`${name}: ${text.slice(0, 200)}`)
    } catch {
      // Refused by the browser: nothing was read.
    }
  }
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json',
    'text/plain; x=application/json',
  ]
  const jobs: Promise<void>[] = []
  for (const [path, body] of bodies) {
    const text = JSON.stringify(body)
    for (const mode of ['cors', 'no-cors'] as const)
      for (const type of types)
        for (const credentials of ['include', 'omit'] as const)
          jobs.push(
            attempt(`fetch ${mode} ${type} ${path}`, async () => {
              const headers = { 'content-type': type }
              const response = await fetch(url + path, {
                method: 'POST',
                mode,
                headers,
                credentials,
                body: text,
              })
              return response.type === 'opaque' ? '' : response.text()
            }),
          )
    for (const method of ['PUT', 'DELETE', 'PATCH'])
      jobs.push(
        attempt(`${method} ${path}`, async () =>
          (await fetch(url + path, { method, body: text })).text(),
        ),
      )
    const form = new FormData()
    form.set('body', text)
    jobs.push(
      attempt(`multipart ${path}`, async () =>
        (await fetch(url + path, { method: 'POST', mode: 'no-cors', body: form })).text(),
      ),
    )
    navigator.sendBeacon(url + path, text)
    navigator.sendBeacon(url + path, new Blob([text], { type: 'text/plain' }))
    try {
      navigator.sendBeacon(url + path, new Blob([text], { type: 'application/json' }))
    } catch {
      // Browsers refuse this form outright.
    }
    // Forms: the name and the value of a field make up the JSON around the "=".
    for (const enctype of [
      'text/plain',
      'multipart/form-data',
      'application/x-www-form-urlencoded',
    ])
      for (const policy of ['', 'no-referrer']) {
        const frame = document.createElement('iframe')
        frame.name = `f${Math.random()}`
        if (policy) frame.referrerPolicy = 'no-referrer'
        const element = document.createElement('form')
        Object.assign(element, { action: url + path, method: 'POST', enctype, target: frame.name })
        if (policy) element.setAttribute('rel', 'noreferrer')
        const field = document.createElement('input')
        field.name = `${text.slice(0, -1)}${text === '{}' ? '' : ','}"x":"`
        field.value = '"}'
        element.append(field)
        document.body.append(frame, element)
        element.submit()
      }
    // A page without an origin: its requests say "null".
    const sandboxed = document.createElement('iframe')
    sandboxed.setAttribute('sandbox', 'allow-scripts allow-forms')
    sandboxed.srcdoc = `<script>fetch(${JSON.stringify(url + path)},{method:'POST',mode:'no-cors',body:${JSON.stringify(text)}});fetch(${JSON.stringify(url + path)},{method:'POST',headers:{'content-type':'application/json'},body:${JSON.stringify(text)}}).then(r=>r.text()).then(t=>parent.postMessage('LEAK '+t,'*'))</script>`
    document.body.append(sandboxed)
  }
  addEventListener('message', ({ data }) => {
    if (String(data).startsWith('LEAK')) read.push(`null origin: ${String(data).slice(0, 200)}`)
  })
  for (const path of paths) {
    for (const mode of ['cors', 'no-cors'] as const)
      jobs.push(
        attempt(`GET ${mode} ${path}`, async () => {
          const response = await fetch(url + path, { mode, credentials: 'include' })
          return response.type === 'opaque' ? '' : response.text()
        }),
      )
    const frame = document.createElement('iframe')
    frame.src = url + path
    document.body.append(frame)
    jobs.push(
      attempt(`iframe ${path}`, async () => {
        await wait(800)
        return frame.contentDocument?.body?.innerText ?? ''
      }),
    )
    const image = new Image()
    image.src = url + path
    const script = document.createElement('script')
    script.src = url + path
    const style = document.createElement('link')
    Object.assign(style, { rel: 'stylesheet', href: url + path })
    const embedded = document.createElement('object')
    embedded.data = url + path
    document.body.append(image, script, style, embedded)
  }
  // A GET that changes something, as endpoints of an application may.
  for (const path of [`/threads/${threadId}/x/count`]) {
    const image = new Image()
    image.src = url + path
    jobs.push(attempt(path, async () => (await fetch(url + path, { mode: 'no-cors' })).text()))
  }
  jobs.push(
    attempt('EventSource', () => {
      const source = new EventSource(`${url}/threads/${threadId}/stream`, { withCredentials: true })
      return new Promise((resolve) => {
        source.onmessage = ({ data }) => resolve(String(data))
        for (const name of ['thread_created', 'message_added', 'message_queued'])
          source.addEventListener(name, (event) => resolve(String((event as MessageEvent).data)))
        setTimeout(() => {
          source.close()
          resolve('')
        }, 1200)
      })
    }),
  )
  jobs.push(
    attempt('WebSocket', () => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/threads/${threadId}/stream`)
      return new Promise((resolve) => {
        socket.onmessage = ({ data }) => resolve(String(data))
        socket.onclose = () => resolve('')
        socket.onopen = () => resolve('open')
      })
    }),
  )
  await Promise.all(jobs)
  await wait(1500)
  return read
}

let browser: Browser
let evil: Server
let evilUrl = ''

beforeAll(async () => {
  evil = createServer((_, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end('<!doctype html><title>Evil</title><body></body>')
  })
  await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve))
  evilUrl = `http://127.0.0.1:${(evil.address() as AddressInfo).port}`
  browser = await launchBrowser()
  // The first start unpacks 200 MB.
}, 120_000)

afterAll(async () => {
  await browser?.close()
  evil?.closeAllConnections()
  evil?.close()
})

/** Everything in the runtime that a request could change. */
async function picture({ runtime }: Kit): Promise<unknown> {
  const heads = await runtime.threads.list({ limit: 1000 })
  const logs = await Promise.all(heads.map(({ id }) => runtime.threads.events(id)))
  return {
    heads,
    logs,
    waiting: (await runtime.inbox.list()).map(({ interruptId }) => interruptId),
  }
}

async function opened(address: string): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(address)
  return page
}

const settings = {
  'as `skein dev` serves': { auth: 'none' as const },
  'as a server with keys serves': { auth: { keys: Object.values(KEYS) } },
}

describe.each(Object.entries(settings))(
  'a page of another origin, against a server %s',
  (_, options) => {
    let kit: Kit
    let world: World
    let serving: Serving

    beforeAll(async () => {
      // An endpoint that changes something although it only reads, as applications have them.
      const count = defineEndpoint({
        path: 'count',
        method: 'GET',
        execute(_, state) {
          state.setValue('count', Number(state.getValue('count') ?? 0) + 1)
          return new Response('counted')
        },
      })
      kit = await startKit({ runtime: { endpoints: [...endpoints, count] } })
      world = await buildWorld(kit)
      const page = '<!doctype html><title>Own</title><body></body>'
      const headers = { 'content-type': 'text/html' }
      // A page of the server itself, to see that the same requests work from there.
      const before = (request: Request): Response | undefined =>
        new URL(request.url).pathname === '/own'
          ? new Response(page, {
              headers: {
                ...headers,
                'content-security-policy': "default-src 'self' 'unsafe-eval'",
              },
            })
          : undefined
      serving = await serve(kit.runtime, {
        port: 0,
        ...options,
        before,
        local: { tenant: 'acme', name: 'local', scopes: ['admin'] },
      })
    })
    afterAll(async () => {
      await serving.close({ graceMs: 0 })
      await kit.stop()
    })

    const targetAt = (url: string): Target => ({
      url,
      threadId: world.threadId,
      interruptId: world.params['interruptId']!,
    })

    test.each(['127.0.0.1', 'localhost'])(
      'changes nothing and reads nothing (at %s)',
      { timeout: 120_000 },
      async (host) => {
        await kit.runtime.idle()
        const before = await picture(kit)
        const page = await opened(evilUrl)
        const url = serving.url.replace('127.0.0.1', host)
        expect(await page.evaluate(attack, targetAt(url))).toEqual([])
        // The page goes to the server itself, by a link and by a form that fills the window.
        await page.evaluate((address) => {
          const form = document.createElement('form')
          Object.assign(form, {
            action: `${address}/threads`,
            method: 'POST',
            enctype: 'text/plain',
          })
          const field = document.createElement('input')
          field.name = '{"agent":"desk","message":"PWNED","x":"'
          field.value = '"}'
          form.append(field)
          document.body.append(form)
          form.submit()
        }, url)
        await page.waitForLoadState()
        expect(await picture(kit)).toEqual(before)
        await page.close()
      },
    )

    test('a page of the server itself does what the other may not', async () => {
      const own = await opened(`${serving.url}/own`)
      const status = await own.evaluate(
        async (key) => {
          const headers: Record<string, string> = { 'content-type': 'application/json' }
          if (key) headers['authorization'] = `Bearer ${key}`
          const body = JSON.stringify({ agent: 'desk' })
          return (await fetch('/threads', { method: 'POST', headers, body })).status
        },
        options.auth === 'none' ? '' : KEYS.acme.key,
      )
      expect(status).toBe(201)
      await own.close()
    })
  },
)
