import { setImmediate } from 'node:timers/promises'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodeBase64 } from '@skein/base'
import { calls, fails, says, scripted, waits } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  defineEffect,
  defineEndpoint,
  defineHook,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
} from '@skein/runtime'
import { createHttp, type Http } from '../../src/index.ts'
import { pathParams } from '../../src/operations/operation.ts'
import { canaryOf } from '../../../runtime/test/simulation/canary.ts'
import { chanceOf } from '../../../runtime/test/simulation/chance.ts'

const canary = canaryOf(chanceOf(20))
const { secret } = canary
const KEY = 'key-of-acme-0123456789'
/** Every form in which a careless program might print it. */
const forms = [
  secret,
  encodeBase64(new TextEncoder().encode(secret)),
  encodeBase64(new TextEncoder().encode(`user:${secret}`)),
  encodeURIComponent(secret),
  Buffer.from(secret).toString('hex'),
  JSON.stringify(secret),
]
const all = forms.join(' and ')

const folder = mkdtempSync(join(tmpdir(), 'skein-canary-'))
const reported: string[] = []
const thrown: string[] = []
/** What models were asked; whether the secret was in it. */
const requests: string[] = []
let runtime: EmbeddedRuntime
let http: Http
let id = ''

/** Tools that leak in every way that a tool has. */
const tools = Object.entries({
  returns: () => all,
  nests: () => ({ deep: [{ [secret]: all }] }),
  throws: () => {
    throw new Error(`No: ${all}`, { cause: new Error(all) })
  },
}).map(([name, execute]) =>
  defineTool({ name, description: 'Leaks.', risk: 'read_only', execute: () => execute() }),
)
const busy = defineTool({
  name: 'busy',
  description: 'Leaks through the state.',
  risk: 'write_low_risk',
  async execute(state) {
    await state.emit('told', { text: all })
    await state.emit('shown', all, { transient: true })
    await state.setStatus(`working with ${secret}`)
    state.setValue('kept', all)
    state.queueMessage({ content: `Queued: ${all}`, isSilent: true } as never)
    state.scheduleEffect('remind', { what: all }, 3_600_000)
    return `The variable is ${state.env('API_KEY')}`
  },
})

/** No piece of a stream has the whole secret. */
const IN_PIECES = { chunks: 3 }

const model = scripted((request) => {
  requests.push(JSON.stringify([request.system, request.messages, request.tools]))
  const last = request.messages.at(-1)
  const asked = request.messages.findLast(({ type }) => type === 'user')
  const text = asked?.type === 'user' ? asked.text : ''
  if (last?.type === 'tool_result') return says(`They said ${all}.`)
  if (text.includes('fail'))
    return [says(`Half ${all}`), fails({ code: 'INVALID_REQUEST', message: `Bad key ${all}` })]
  if (text.includes('argument')) return calls('returns', { key: all })
  const named = ['returns', 'nests', 'throws', 'busy'].find((name) => text.includes(name))
  if (named !== undefined) return calls(named, {})
  return says(all)
}, IN_PIECES)

beforeAll(async () => {
  const prompt = definePrompt({
    name: 'desk',
    prompt: `You know ${secret}.`,
    model,
    tools: [...tools, busy],
    variables: [{ name: 'API_KEY', type: 'secret' }],
  })
  const failing = defineHook({
    id: 'failing',
    hook: 'after_system_message',
    execute: (_, text) => {
      if (text.includes('never')) return text
      throw new Error(`The hook knows ${all}.`)
    },
  })
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'desk', hooks: [failing], sideA: { prompt } })],
    effects: [
      defineEffect({
        name: 'remind',
        execute: () => {
          throw new Error(`The effect knows ${all}.`)
        },
      }),
    ],
    endpoints: [
      defineEndpoint({
        path: 'broken',
        method: 'GET',
        execute: () => {
          throw new Error(`The endpoint knows ${all}.`)
        },
      }),
    ],
    folder,
    secretKey: new Uint8Array(32).fill(5),
    onError: (error) => reported.push(String(error)),
  })
  await runtime.start()
  http = createHttp(runtime, {
    auth: { keys: [{ key: KEY, tenant: 'acme', user: 'ada', scopes: ['admin', 'metrics:read'] }] },
    // What an endpoint throws is the application's own; it must not get any further than to its operator.
    onError: (error) => thrown.push(String(error)),
  })
  const created = await ask('POST', '/threads', { agent: 'desk', secrets: { API_KEY: secret } })
  id = (JSON.parse(created.text) as { id: string }).id
  for (const text of ['hello', 'argument', 'returns', 'nests', 'throws', 'busy', 'fail'])
    await runtime.threads.run(id, text)
  // What a person writes.
  await ask('POST', `/threads/${id}/messages`, { text: `My key is ${all}` })
  await runtime.threads.settled(id)
  await ask('PATCH', `/threads/${id}`, { title: `About ${secret}`, tags: [secret] })
  await ask('PUT', `/threads/${id}/values/mine`, { value: { text: all } })
  await ask('POST', `/threads/${id}/effects`, { name: 'remind', args: all, delayMs: 3_600_000 })
  const [effect] = await runtime.threads.effects.list(id)
  await ask('POST', `/threads/${id}/effects/${effect!.id}/run`, {})
  const [message] = await runtime.threads.messages(id)
  await ask('PATCH', `/threads/${id}/messages/${message!.id}`, { text: `Rather ${all}` })
  await ask('POST', `/threads/${id}/stop`, {})
  await runtime.idle()
})
afterAll(async () => {
  await runtime.stop({ graceMs: 0 })
  rmSync(folder, { recursive: true, force: true })
})

async function ask(
  method: string,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  const response = await http.fetch(new Request(`http://localhost${path}`, init))
  const kept = JSON.stringify([...response.headers])
  return { status: response.status, text: `${await response.text()}${body ? '' : kept}` }
}

function look(where: string, text: string): void {
  const found = canary.find(text)
  const at = found === undefined ? -1 : text.indexOf(found)
  expect(
    found === undefined ? '' : `${where}: …${text.slice(Math.max(0, at - 150), at + 60)}`,
  ).toBe('')
}

describe('a secret of a thread is nowhere', () => {
  test('the attack reached every door', async () => {
    const log = JSON.stringify(await runtime.threads.events(id))
    for (const text of ['They said', 'My key is', 'told', 'effect_scheduled', 'tool_execution_end'])
      expect(log).toContain(text)
    expect(log).toContain('[redacted]')
    expect(await runtime.threads.env.list(id)).toEqual([{ name: 'API_KEY', type: 'secret' }])
  })

  test('in what models are asked', () => {
    expect(requests.length).toBeGreaterThan(8)
    for (const request of requests) look('a request', request)
  })

  test('in the log, event by event', async () => {
    for (const { seq, event } of await runtime.threads.events(id))
      look(`event ${seq} (${event.type})`, JSON.stringify(event))
  })

  test('in any answer of the server that reads', async () => {
    const [log] = await runtime.threads.logs(id)
    const [message] = await runtime.threads.messages(id)
    const params: Record<string, string> = {
      threadId: id,
      agent: 'desk',
      logId: log!.logId,
      messageId: message!.id,
      key: 'kept',
      path: 'broken',
    }
    const routes = http.routes.filter(
      (route) => route.method === 'GET' && pathParams(route.path).every((name) => name in params),
    )
    for (const route of routes) {
      const path = route.path.replace(/\{(\w+)\*?\}/g, (_, name: string) => params[name]!)
      const queries: Record<string, string> = {
        streamThread: '?until=parked',
        streamChanges: '?after=0:0:&until=ready',
      }
      const query = queries[route.id] ?? ''
      look(route.id, (await ask('GET', `${path}${query}`)).text)
    }
    expect(routes.length).toBeGreaterThan(20)
    look('the export', await runtime.threads.export(id))
    look('the document', JSON.stringify(await runtime.threads.document(id)))
    look('the stream of a tree', await tree())
  })

  test('in a chat and in the vendors’ formats', async () => {
    const part = { type: 'text', text: 'hello' }
    const chat = {
      id,
      trigger: 'submit-message',
      messages: [{ id: 'm', role: 'user', parts: [part] }],
    }
    look('a chat', (await ask('POST', '/agents/desk/chat', chat)).text)
    look('the history of a chat', (await ask('GET', `/agents/desk/chat/${id}`)).text)
  })

  test('in what operators are told', () => {
    for (const text of reported) look('onError', text)
    expect(thrown).toEqual([expect.stringContaining('The endpoint knows')])
  })

  test('in the files of the store; nobody else may read them', async () => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    const names = files.flatMap((file) => (file.isFile() ? join(file.parentPath, file.name) : []))
    expect(names.some((name) => name.endsWith('skein.db'))).toBe(true)
    for (const name of names) {
      look(name, readFileSync(name).toString('latin1'))
      look(`${name} as UTF-16`, readFileSync(name).toString('utf16le'))
      expect(statSync(name).mode & 0o077, name).toBe(0)
    }
    expect(statSync(folder).mode & 0o077).toBe(0)
  })
})

async function tree(): Promise<string> {
  const abort = new AbortController()
  const headers = { authorization: `Bearer ${KEY}` }
  const request = new Request(`http://localhost/threads/${id}/stream?tree=true`, {
    headers,
    signal: abort.signal,
  })
  const response = await http.fetch(request)
  setTimeout(() => abort.abort(), 500)
  return response.text().catch(() => '')
}

test('an answer that is cut off inside a secret keeps nothing of it', async () => {
  const part = secret.slice(0, 26)
  const model = scripted(() => [says(`The key: ${part}`), waits(Infinity)])
  const agent = defineAgent({
    name: 'cut',
    sideA: { prompt: definePrompt({ name: 'cut', prompt: 'x', model }) },
  })
  const own = await createRuntime({ agents: [agent] })
  await own.start()
  const thread = await own.threads.create({ agent: 'cut' })
  await own.threads.env.set(thread.id, 'API_KEY', secret, { type: 'secret' })
  await own.threads.send(thread.id, 'Say it.')
  const told: unknown[] = []
  let stopping: Promise<unknown> | undefined
  for await (const { event } of own.subscribe(thread.id)) {
    told.push(event)
    // Not immediately: the rest of the text, with the part of the secret, has to arrive first.
    if (event.type === 'text_delta')
      stopping ??= setImmediate().then(() => own.threads.stop(thread.id))
    if (event.type === 'session_end') break
  }
  const log = JSON.stringify(await own.threads.events(thread.id))
  expect(log).toContain('The key: ')
  expect(log).not.toContain(part)
  expect(JSON.stringify(told)).not.toContain(part)
  await stopping
  await own.stop({ graceMs: 0 })
})
