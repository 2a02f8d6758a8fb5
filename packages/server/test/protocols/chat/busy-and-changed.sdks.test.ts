import type { UIMessage } from 'ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startChatClientKit, type ChatClientKit } from './chat-client.ts'
import { paid } from './chat-kit.ts'

let kit: ChatClientKit
beforeAll(async () => {
  kit = await startChatClientKit()
})
afterAll(() => kit.stop())
beforeEach(() => void paid.splice(0))

interface ToolPart {
  readonly type: string
  readonly state: string
  readonly input: unknown
  readonly output?: unknown
  readonly approval?: { readonly id: string; readonly approved?: boolean }
}

const refunds = (message: UIMessage | undefined): ToolPart[] =>
  (message?.parts ?? []).filter(({ type }) => type === 'tool-refund') as unknown as ToolPart[]

const words = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')

async function history(id: string): Promise<unknown> {
  const response = await kit.fetch('ada', `/agents/desk/chat/${id}`)
  return ((await response.json()) as { messages: unknown }).messages
}

/** The messages of a page on which the person has approved the refund with other arguments. */
function approvedWith(messages: readonly UIMessage[], args: unknown): UIMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => {
      const { approval, state } = part as unknown as ToolPart
      if (state !== 'approval-requested') return part
      const answered = { id: approval!.id, approved: true, with: args }
      return { ...part, state: 'approval-responded', approval: answered } as typeof part
    }),
  }))
}

test('a page approves with changes: the real client shows both calls, as the history does', async () => {
  const chat = kit.chat('ada', { id: 'changed' })
  await chat.sendMessage({ text: 'refund' })
  chat.messages = approvedWith(chat.messages, { amount: 3 })
  await chat.sendMessage()
  expect(chat.error).toBeUndefined()
  expect(paid).toEqual([3])
  expect(refunds(chat.lastMessage)).toMatchObject([
    { state: 'output-denied', input: { amount: 5 } },
    { state: 'output-available', input: { amount: 3 }, output: 'Paid 3.' },
  ])
  expect(words(chat.lastMessage)).toBe('I will pay. That is done. Anything else?')
  const [, stored] = (await history('changed')) as UIMessage[]
  expect(refunds(stored).map(({ state, input }) => ({ state, input }))).toEqual(
    refunds(chat.lastMessage).map(({ state, input }) => ({ state, input })),
  )
})

test.each([
  ['arguments that the tool refuses', { amount: 'all' }],
  ['something that is not an object', 7],
])('a page approves with %s: nothing runs, and the call still waits', async (_, args) => {
  const id = `wrong-${typeof args}`
  const chat = kit.chat('ada', { id })
  await chat.sendMessage({ text: 'refund' })
  chat.messages = approvedWith(chat.messages, args)
  await chat.sendMessage()
  expect(chat.error).toBeDefined()
  expect(paid).toEqual([])
  const thread = (await kit.runtime.threads.byClientId('acme', id))!
  expect(thread).toMatchObject({ lifecycle: 'waiting', waiting: 1 })
})

test('who may not approve may not approve with changes', async () => {
  const chat = kit.chat('ada', { id: 'scope' })
  await chat.sendMessage({ text: 'refund' })
  const body = JSON.stringify({ id: 'scope', messages: approvedWith(chat.messages, { amount: 3 }) })
  const headers = { 'content-type': 'application/json' }
  for (const who of ['bob', 'eve', 'clerk'] as const) {
    const response = await kit.fetch(who, '/agents/desk/chat', { method: 'POST', headers, body })
    await response.text()
    const thread = (await kit.runtime.threads.byClientId('acme', 'scope', 'ada'))!
    expect(thread.waiting).toBe(1)
  }
  expect(paid).toEqual([])
})

test('ifBusy in the body: reject is refused, cut goes on with the new message', async () => {
  const chat = kit.chat('ada', { id: 'busy' })
  const first = chat.sendMessage({ text: 'hang' })
  while (!words(chat.lastMessage).includes('three')) await new Promise((go) => setTimeout(go, 5))
  const other = kit.chat('ada', { id: 'busy' })
  await other.sendMessage({ text: 'hello' }, { body: { ifBusy: 'reject' } })
  expect(other.error?.message).toContain('THREAD_BUSY')
  const third = kit.chat('ada', { id: 'busy' })
  await third.sendMessage({ text: 'hello' }, { body: { ifBusy: 'cut' } })
  await first
  expect(words(third.lastMessage)).toContain('You said hello')
  const told = ((await history('busy')) as UIMessage[]).map((one) => words(one).trim())
  expect(told).toMatchObject(['hang', 'One two three', 'hello', words(third.lastMessage).trim()])
  const wrong = kit.chat('ada', { id: 'busy' })
  await wrong.sendMessage({ text: 'hello' }, { body: { ifBusy: 'never' } })
  expect(wrong.error?.message).toContain('ifBusy')
})

test('an AG-UI client approves with changes, and says what happens to a busy thread', async () => {
  const headers = { 'content-type': 'application/json' }
  const run = async (more: object): Promise<string> => {
    const messages = [{ id: 'u1', role: 'user', content: 'refund' }]
    const body = JSON.stringify({ threadId: 'agui', runId: 'r', messages, ...more })
    const response = await kit.fetch('ada', '/agents/desk/ag-ui', { method: 'POST', headers, body })
    return response.text()
  }
  await run({})
  const thread = (await kit.runtime.threads.byClientId('acme', 'agui'))!
  const [item] = await kit.runtime.inbox.list({ rootId: thread.id })
  const messages = [{ id: 'u2', role: 'user', content: 'hello' }]
  expect(await run({ messages, forwardedProps: { ifBusy: 'reject' } })).toContain('THREAD_BUSY')
  expect(await run({ messages, forwardedProps: { ifBusy: 'x' } })).toContain('INPUT_INVALID')
  const shown = { id: item!.toolCallId, type: 'function' }
  const toolCalls = [{ ...shown, function: { name: 'refund', arguments: '{"amount":5}' } }]
  const said = [{ id: 'a1', role: 'assistant', toolCalls }]
  const payload = { approved: true, with: { amount: 2 } }
  const resume = [{ interruptId: item!.interruptId, status: 'resolved', payload }]
  expect(await run({ messages: said, resume })).toContain('"outcome":{"type":"success"}')
  expect(paid).toEqual([2])
})
