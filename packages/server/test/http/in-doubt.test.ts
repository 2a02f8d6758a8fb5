import { afterEach, describe, expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  memoryStore,
  type Store,
  verifyAudit,
  type WaitingItem,
} from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { createHttp, type ApiKey, type Http } from '../../src/index.ts'
import { threadPartId } from '../../src/protocols/thread-part-id.ts'

const scopes = ['threads:read', 'threads:write'] as const
const KEYS = {
  /** May chat with the agent, but decide nothing. */
  eve: { key: 'key-of-eve-0123456789', tenant: 'acme', user: 'eve', scopes },
  pat: {
    key: 'key-of-pat-0123456789',
    tenant: 'acme',
    user: 'pat',
    scopes: [...scopes, 'threads:all', 'approvals:write'],
  },
} as const satisfies Record<string, ApiKey>
type Who = keyof typeof KEYS

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

interface Scene {
  readonly runtime: EmbeddedRuntime
  readonly item: WaitingItem
  readonly paid: string[]
  readonly http: Http
  ask(who: Who, path: string, body: unknown): Promise<Response>
  /** Waits until the thread rests, and lists what it waits for. */
  waiting(): Promise<readonly WaitingItem[]>
}

/** A payment that was approved, and whose process died in it. */
async function payInDoubt(): Promise<Scene> {
  const paid: string[] = []
  const undo = defineTool({
    name: 'undo',
    description: 'Undoes.',
    risk: 'write_low_risk',
    args: z.looseObject({}),
    execute: () => 'undone',
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    args: z.object({ to: z.string() }),
    rollback: (payload) => ({ type: 'tool_call', target: 'undo', payload }),
    async execute(_, { to }) {
      paid.push(to)
      if (paid.length === 1) await new Promise(() => {})
      return 'paid'
    },
  })
  const script = [calls('pay', { to: 'bob' }, { id: 'call-1' }), says('Done.'), says('Well.')]
  const model = scripted(script)
  const prompt = definePrompt({ name: 'p', prompt: 'P.', model, tools: [pay, undo] })
  const agents = [defineAgent({ name: 'desk', sideA: { prompt } })]
  const store = keptOpen(memoryStore())
  const open = async (): Promise<EmbeddedRuntime> => {
    const runtime = await createRuntime({ agents, store })
    opened.push(runtime)
    await runtime.start()
    return runtime
  }
  const first = await open()
  const creation = { agent: 'desk', tenant: 'acme', owner: 'eve', clientId: 'chat-1' }
  const { id } = await first.threads.create(creation)
  await first.threads.run(id, 'Pay bob.')
  const [asked] = await first.inbox.list()
  await first.inbox.approve({ ...asked!, by: 'pat' })
  await expect.poll(() => paid).toEqual(['bob'])
  await first.stop({ graceMs: 0 })
  const runtime = await open()
  const waiting = async (): Promise<readonly WaitingItem[]> => {
    await runtime.idle()
    return runtime.inbox.list()
  }
  const [item] = await waiting()
  const http = createHttp(runtime, { auth: { keys: Object.values(KEYS) } })
  const ask: Scene['ask'] = (who, path, body) =>
    http.fetch(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${KEYS[who].key}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
      }),
    )
  return { runtime, item: item!, paid, http, ask, waiting }
}

function keptOpen(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

type Door = (scene: Scene, who: Who, found: string) => Promise<Response>

const doors: readonly (readonly [string, Door])[] = [
  [
    'approvals',
    ({ ask, item: { threadId, interruptId } }, who, found) =>
      ask(who, `/approvals/${threadId}/${interruptId}`, { type: 'settle', found }),
  ],
  [
    'chat',
    ({ ask }, who, output) => {
      const call = { type: 'tool-pay', toolCallId: 'call-1', input: { to: 'bob' } }
      const parts = [{ ...call, state: 'output-available', output }]
      const messages = [{ id: 'm1', role: 'assistant', parts }]
      return ask(who, '/agents/desk/chat', { id: 'chat-1', messages, trigger: 'submit-message' })
    },
  ],
  [
    'responses',
    ({ ask, item: { threadId, interruptId } }, who, output) =>
      ask(who, '/v1/responses', {
        model: 'desk',
        conversation: threadPartId('conv', threadId),
        input: [
          {
            type: 'function_call_output',
            call_id: threadPartId('call', threadId, interruptId),
            output,
          },
        ],
      }),
  ],
]

test('the question is of its own kind, in the inbox, the log, the view and the document', async () => {
  const { runtime, item } = await payInDoubt()
  expect(item).toMatchObject({
    kind: 'in_doubt',
    toolName: 'pay',
    arguments: { to: 'bob' },
    risk: 'write_high_risk',
    question: { type: 'in_doubt', choices: ['applied', 'absent', 'unknown'] },
  })
  const events = await runtime.threads.events(item.threadId)
  const asked = events.findLast(({ event }) => event.type === 'interrupt_opened')?.event
  expect(asked).toMatchObject({ interrupt: { kind: 'in_doubt', toolCallId: 'call-1' } })
  const document = await runtime.threads.document(item.threadId)
  expect(JSON.stringify(document)).toContain('"kind":"in_doubt"')
})

describe.each(doors)('by the door %s', (_, door) => {
  test.each(['applied', 'absent', 'unknown', 'nonsense'])(
    'nobody without approvals:write says "%s"; nothing changes',
    async (found) => {
      const scene = await payInDoubt()
      const { runtime, item, paid } = scene
      const before = await runtime.threads.get(item.threadId)
      const response = await door(scene, 'eve', found)
      expect(response.status).toBe(403)
      expect(await response.text()).toContain('approvals:write')
      expect(await scene.waiting()).toEqual([item])
      expect((await runtime.threads.get(item.threadId)).seq).toBe(before.seq)
      expect(paid).toEqual(['bob'])
    },
  )

  test('a word that says nothing is refused', async () => {
    const scene = await payInDoubt()
    expect((await door(scene, 'pat', 'nonsense')).status).toBe(400)
    expect(await scene.waiting()).toEqual([scene.item])
  })

  test('absent leads to a new approval, and only that runs the payment again', async () => {
    const scene = await payInDoubt()
    const { runtime, item, paid } = scene
    await door(scene, 'pat', 'absent')
    const [again, ...more] = await scene.waiting()
    expect(more).toEqual([])
    expect(again).toMatchObject({ kind: 'approval', toolCallId: 'call-1' })
    expect(again?.request?.action.round).toBe(2)
    expect(paid).toEqual(['bob'])
    await runtime.inbox.approve({ ...again!, by: 'pat' })
    await runtime.idle()
    expect(paid).toEqual(['bob', 'bob'])
    const audit = await runtime.threads.audit(item.threadId)
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  })

  test('applied ends the call; it does not run again', async () => {
    const scene = await payInDoubt()
    await door(scene, 'pat', 'applied')
    expect(await scene.waiting()).toEqual([])
    expect(scene.paid).toEqual(['bob'])
    const events = await scene.runtime.threads.events(scene.item.threadId)
    const answered = events.findLast(({ event }) => event.type === 'interrupt_answered')?.event
    expect(answered).toMatchObject({ answeredBy: 'pat' })
  })
})

test('the other ways to answer do not answer it, whoever asks', async () => {
  const scene = await payInDoubt()
  const { ask, item, runtime } = scene
  const path = `/approvals/${item.threadId}/${item.interruptId}`
  for (const body of [
    { type: 'result', value: 'absent' },
    { type: 'approve' },
    { type: 'deny', reason: 'no' },
    { type: 'error', message: 'no' },
  ])
    expect((await ask('pat', path, body)).status).toBe(400)
  const answered = runtime.inbox.answer(item, { type: 'result', value: 'absent' })
  await expect(answered).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  expect(await scene.waiting()).toEqual([item])
  expect(scene.paid).toEqual(['bob'])
})

test('the client settles it', async () => {
  const scene = await payInDoubt()
  const fetch = ((input: Request | string, init?: RequestInit) =>
    scene.http.fetch(new Request(input, init))) as typeof globalThis.fetch
  const client = (who: Who) =>
    createClient({ url: 'http://localhost', apiKey: KEYS[who].key, fetch })
  const refused = client('eve').inbox.settle(scene.item, 'absent')
  await expect(refused).rejects.toMatchObject({ code: 'SCOPE_MISSING' })
  await client('pat').inbox.settle(scene.item, 'applied')
  expect(await scene.waiting()).toEqual([])
})

test('a page that reports a failure does not know either', async () => {
  const scene = await payInDoubt()
  const call = { type: 'tool-pay', toolCallId: 'call-1', input: { to: 'bob' } }
  const parts = [{ ...call, state: 'output-error', errorText: 'no idea' }]
  const messages = [{ id: 'm1', role: 'assistant', parts }]
  const body = { id: 'chat-1', messages, trigger: 'submit-message' }
  expect((await scene.ask('eve', '/agents/desk/chat', body)).status).toBe(403)
  await scene.ask('pat', '/agents/desk/chat', body)
  expect(await scene.waiting()).toEqual([])
  expect(scene.paid).toEqual(['bob'])
})
