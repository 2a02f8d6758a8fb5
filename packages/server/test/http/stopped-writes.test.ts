import { afterEach, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  type RuntimeEvent,
} from '@skein/runtime'
import { createHttp, type Http } from '../../src/index.ts'
import { until } from '../nodes/cluster.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

interface Scene {
  readonly http: Http
  readonly runtime: EmbeddedRuntime
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
  /** Resolves when the first payment has started. */
  readonly started: Promise<void>
}

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

/** Each begins a message through an API, waits for the first payment, and cancels as a client of that API does. */
const doors: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'POST /threads/{id}/stop': async ({ runtime, post, started }) => {
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.send(id, 'go')
    await started
    const stopped = await post(`/threads/${id}/stop`, {})
    expect(stopped.status).toBeLessThan(300)
    expect((await runtime.threads.get(id)).lifecycle).toBe('stopping')
  },
  'POST /threads/{id}/terminate': async ({ runtime, post, started }) => {
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.send(id, 'go')
    await started
    await post(`/threads/${id}/terminate`, {})
  },
  "the stop of useChat's page": async ({ post, started }) => {
    const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'go' }] }]
    const body = { id: 'chat-1', messages, trigger: 'submit-message' }
    const answer = await post('/agents/desk/chat', body)
    await started
    await post('/agents/desk/chat/chat-1/stop', {})
    await answer.text()
  },
  'tasks/cancel of A2A': async ({ post, started }) => {
    const message = { messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'go' }] }
    const ask = (id: number, method: string, params: object): Promise<Response> =>
      post('/agents/desk/a2a', { jsonrpc: '2.0', id, method, params })
    const sent = await ask(1, 'message/send', { message, configuration: { blocking: false } })
    const { result } = (await sent.json()) as { result: { id?: string; task?: { id: string } } }
    await started
    const cancelled = await ask(2, 'tasks/cancel', { id: result.id ?? result.task?.id })
    expect(JSON.stringify(await cancelled.json())).toMatch(/cancell?ed/i)
  },
  'notifications/cancelled of MCP': async ({ http, post, started }) => {
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const begun = await post('/agents/desk/mcp', hello)
    const own = { ...headers, 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
    await begun.text()
    const call = { name: 'ask', arguments: { message: 'go' } }
    const asked = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: call }
    const answer = await http.fetch(
      new Request('http://localhost/agents/desk/mcp', {
        method: 'POST',
        headers: own,
        body: JSON.stringify(asked),
      }),
    )
    await started
    const gone = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } }
    await post('/agents/desk/mcp', gone, { headers: own })
    await answer.body?.cancel()
  },
  'a client of /v1 that disconnects': async ({ post, started }) => {
    const controller = new AbortController()
    const messages = [{ role: 'user', content: 'go' }]
    const body = { model: 'desk', messages, stream: true }
    const answer = post('/v1/chat/completions', body, { signal: controller.signal })
    const read = answer.then((response) => response.text()).catch(() => {})
    await started
    controller.abort()
    await read
  },
}

for (const lands of ['in its grace', 'after its grace'] as const)
  for (const [door, open] of Object.entries(doors))
    test(`${door}, while a payment runs that lands ${lands}: the log says what the ledger says`, async () => {
      const ledger: string[] = []
      let start!: () => void
      const started = new Promise<void>((resolve) => (start = resolve))
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        args: z.object({ n: z.number() }),
        risk: 'write_low_risk',
        execute: async (_, { n }) => {
          start()
          await new Promise((resolve) => setTimeout(resolve, lands === 'in its grace' ? 40 : 250))
          ledger.push(`paid ${n}`)
          return `paid ${n}`
        },
      })
      const two = [calls('pay', { n: 1 }), calls('pay', { n: 2 })]
      const model = scripted(({ messages }) =>
        messages.some(({ type }) => type === 'assistant') ? says('Ok.') : two,
      )
      const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [pay] })
      const runtime = await createRuntime({
        agents: [defineAgent({ name: 'desk', sideA: { prompt } })],
        limits: { stopGraceMs: 120 },
      })
      opened.push(runtime)
      await runtime.start()
      const http = createHttp(runtime, { auth: 'none' })
      const post: Scene['post'] = async (path, body, init) =>
        http.fetch(
          new Request(`http://localhost${path}`, {
            method: 'POST',
            headers,
            body: JSON.stringify(body),
            ...init,
          }),
        )
      await open({ http, runtime, post, started })

      const [{ id } = { id: '' }] = await runtime.threads.list({})
      const events = async (): Promise<readonly RuntimeEvent[]> =>
        (await runtime.threads.events(id)).map(({ event }) => event)
      await until(async () => (await events()).some(({ type }) => type === 'session_end'))
      const isLate = lands === 'after its grace'
      if (isLate)
        await until(async () => (await events()).some(({ type }) => type === 'late_result'))
      const log = await events()
      expect(log.filter(({ type }) => type === 'tool_execution_end')).toMatchObject([
        isLate ? { outcome: 'unknown' } : { outcome: 'success', result: 'paid 1' },
        { outcome: 'interrupted', result: expect.stringMatching(/was not run\.$/) },
      ])
      expect(log.filter(({ type }) => type === 'late_result')).toMatchObject(
        isLate ? [{ outcome: 'success', result: 'paid 1' }] : [],
      )
      expect(ledger).toEqual(['paid 1'])
    })
