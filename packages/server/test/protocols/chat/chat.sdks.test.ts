import type { UIMessage } from 'ai'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt } from '@skein/runtime'
import { startChatClientKit, type ChatClientKit } from './chat-client.ts'
import { paid, plain } from './chat-kit.ts'

let kit: ChatClientKit
beforeAll(async () => {
  kit = await startChatClientKit()
})
afterAll(() => kit.stop())
beforeEach(() => void paid.splice(0))

interface ToolPart {
  readonly type: string
  readonly state?: string
  readonly toolCallId?: string
  readonly output?: unknown
  readonly approval?: { readonly id: string; readonly approved?: boolean }
}

const parts = (message: UIMessage | undefined, type: string): ToolPart[] =>
  (message?.parts ?? []).filter((part) => part.type === type) as ToolPart[]

const words = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')

async function history(id: string): Promise<unknown> {
  const response = await kit.fetch('ada', `/agents/desk/chat/${id}`)
  return ((await response.json()) as { messages: unknown }).messages
}

test('an answer streams; the thread is the chat, and its history what the page has', async () => {
  const chat = kit.chat('ada', { id: 'plain' })
  await chat.sendMessage({ text: 'hello' })
  expect(chat.status).toBe('ready')
  expect(words(chat.lastMessage)).toBe('You said hello and that is all there is to say.')
  await chat.sendMessage({ text: 'again' })
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  expect(plain(chat.messages)).toEqual(await history('plain'))
  const thread = await kit.runtime.threads.byClientId('acme', 'plain')
  expect(thread).toMatchObject({ agent: 'desk', owner: 'ada' })
  expect(chat.lastMessage?.metadata).toMatchObject({ skein: { threadId: thread!.id } })
})

test('a tool call is shown with its result, its gate and its evidence', async () => {
  const chat = kit.chat('ada', { id: 'tool' })
  await chat.sendMessage({ text: 'note twice' })
  expect(parts(chat.lastMessage, 'tool-note').map(({ state, output }) => [state, output])).toEqual([
    ['output-available', 'Noted: first'],
    ['output-available', 'Noted: second'],
  ])
  expect(parts(chat.lastMessage, 'data-gate').length).toBeGreaterThan(0)
  expect(parts(chat.lastMessage, 'data-evidence').length).toBe(2)
  expect(plain(chat.messages)).toEqual(await history('tool'))
})

test('a person approves: the call runs once, in the same message', async () => {
  const chat = kit.chat('ada', { id: 'yes' })
  await chat.sendMessage({ text: 'refund' })
  const [asked] = parts(chat.lastMessage, 'tool-refund')
  expect(asked?.state).toBe('approval-requested')
  expect(plain(chat.messages)).toEqual(await history('yes'))
  expect(paid).toEqual([])
  await chat.addToolApprovalResponse({ id: asked!.approval!.id, approved: true })
  await idle(chat)
  expect(chat.messages).toHaveLength(2)
  expect(parts(chat.lastMessage, 'tool-refund')).toMatchObject([
    { state: 'output-available', output: 'Paid 5.' },
  ])
  expect(words(chat.lastMessage)).toBe('I will pay. That is done. Anything else?')
  expect(paid).toEqual([5])
  expect(plain(chat.messages)).toEqual(await history('yes'))
  const { id } = (await kit.runtime.threads.byClientId('acme', 'yes'))!
  const answered = (await kit.runtime.threads.events(id)).find(
    ({ event }) => event.type === 'interrupt_answered',
  )
  expect(answered?.event).toMatchObject({ answeredBy: 'ada', answer: { type: 'approve' } })
})

test('a person declines: nothing runs, and the model is told', async () => {
  const chat = kit.chat('ada', { id: 'no' })
  await chat.sendMessage({ text: 'refund' })
  const [asked] = parts(chat.lastMessage, 'tool-refund')
  await chat.addToolApprovalResponse({
    id: asked!.approval!.id,
    approved: false,
    reason: 'Too much.',
  })
  await idle(chat)
  expect(parts(chat.lastMessage, 'tool-refund')).toMatchObject([
    { state: 'output-denied', approval: { approved: false, reason: 'Too much.' } },
  ])
  expect(paid).toEqual([])
  expect(plain(chat.messages)).toEqual(await history('no'))
})

test('two approvals are answered together', async () => {
  const chat = kit.chat('ada', { id: 'both' })
  await chat.sendMessage({ text: 'refund both' })
  for (;;) {
    const open = parts(chat.lastMessage, 'tool-refund').filter(
      ({ state }) => state === 'approval-requested',
    )
    if (open.length === 0) break
    for (const { approval } of open)
      await chat.addToolApprovalResponse({ id: approval!.id, approved: true })
    await idle(chat)
  }
  expect(paid).toEqual([1, 2])
  expect(plain(chat.messages)).toEqual(await history('both'))
})

test('a tool of the page gives its result', async () => {
  const chat = kit.chat('ada', {
    id: 'locate',
    onToolCall: ({ toolCall }) => {
      if (toolCall.toolName !== 'locate') return
      void chat.addToolOutput({
        tool: 'locate' as never,
        toolCallId: toolCall.toolCallId,
        output: { city: 'Graz' } as never,
      })
    },
  })
  await chat.sendMessage({ text: 'locate' })
  await idle(chat)
  expect(parts(chat.lastMessage, 'tool-locate')).toMatchObject([
    { state: 'output-available', output: { city: 'Graz' } },
  ])
  expect(words(chat.lastMessage)).toBe('That is done. Anything else?')
  expect(plain(chat.messages)).toEqual(await history('locate'))
})

test('a child is its call with a status; its inner words stay inside', async () => {
  const chat = kit.chat('ada', { id: 'child' })
  await chat.sendMessage({ text: 'work' })
  expect(parts(chat.lastMessage, 'tool-worker')).toMatchObject([
    { state: 'output-available', output: 'The hole is dug.' },
  ])
  expect(parts(chat.lastMessage, 'data-child')).toMatchObject([
    { data: { name: 'worker', status: 'completed' } },
  ])
  expect(JSON.stringify(chat.messages)).not.toContain('Inner words')
  expect(plain(chat.messages)).toEqual(await history('child'))
})

test('what a child asks is shown on its call, and answered there', async () => {
  const chat = kit.chat('ada', { id: 'nested' })
  await chat.sendMessage({ text: 'work and pay' })
  const [asked] = parts(chat.lastMessage, 'tool-worker')
  expect(asked).toMatchObject({ state: 'approval-requested' })
  expect(plain(chat.messages)).toEqual(await history('nested'))
  await chat.addToolApprovalResponse({ id: asked!.approval!.id, approved: true })
  await idle(chat)
  expect(paid).toEqual([7])
  expect(parts(chat.lastMessage, 'tool-worker')).toMatchObject([
    { state: 'output-available', output: 'The hole is dug.' },
  ])
})

test('an approval says when the call cannot be undone, also that of a child', async () => {
  for (const [text, type, call] of [
    ['mail her', 'tool-mail', undefined],
    ['work and mail', 'tool-worker', 'mail({"to":"bob"})'],
  ] as const) {
    const id = `final-${type}`
    const chat = kit.chat('ada', { id })
    await chat.sendMessage({ text })
    const [asked] = parts(chat.lastMessage, type)
    const why = call === undefined ? '' : `desk › worker: ${call} `
    expect(asked).toMatchObject({
      state: 'approval-requested',
      approval: { requestReason: `${why}This cannot be undone.` },
    })
    expect(plain(chat.messages)).toEqual(await history(id))
    await chat.addToolApprovalResponse({ id: asked!.approval!.id, approved: true })
    await idle(chat)
    expect(parts(chat.lastMessage, type)).toMatchObject([{ state: 'output-available' }])
  }
  const chat = kit.chat('ada', { id: 'not-final' })
  await chat.sendMessage({ text: 'refund' })
  expect(JSON.stringify(chat.messages)).not.toContain('cannot be undone')
})

test('a person speaks while a decision is open, and decides later', async () => {
  const chat = kit.chat('ada', { id: 'later' })
  await chat.sendMessage({ text: 'refund' })
  const [asked] = parts(chat.lastMessage, 'tool-refund')
  await chat.sendMessage({ text: 'and hello' })
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  await chat.addToolApprovalResponse({ id: asked!.approval!.id, approved: true })
  await idle(chat)
  await chat.sendMessage()
  await idle(chat)
  expect(paid).toEqual([5])
  expect(plain(chat.messages)).toEqual(await history('later'))
  // Asked again with nothing new, the page is left as it is.
  const before = plain(chat.messages)
  await chat.sendMessage()
  expect(plain(chat.messages)).toEqual(before)
})

/** Waits until the chat has nothing under way. */
async function idle(chat: { readonly status: string }): Promise<void> {
  for (let rest = 0; rest < 20;) {
    await new Promise((resolve) => setImmediate(resolve))
    rest = chat.status === 'ready' || chat.status === 'error' ? rest + 1 : 0
  }
}

test('an address with a query works for sending and for resuming', async () => {
  const api = '/agents/desk/chat?hold=false'
  const chat = kit.chat('ada', { id: 'with-query', api })
  await chat.sendMessage({ text: 'hello' })
  expect(chat.error).toBe(undefined)
  expect(words(chat.lastMessage)).toBe('You said hello and that is all there is to say.')
  const hanging = kit.chat('ada', { id: 'with-query', api, messages: chat.messages })
  void hanging.sendMessage({ text: 'hang' })
  const thread = await kit.runtime.threads.byClientId('acme', 'with-query')
  const isSpeaking = async (): Promise<boolean> =>
    (await kit.runtime.threads.events(thread!.id)).filter(
      ({ event }) => event.type === 'step_start',
    ).length === 2
  while (!(await isSpeaking())) await new Promise((resolve) => setTimeout(resolve, 5))
  const back = kit.chat('ada', { id: 'with-query', api, messages: chat.messages })
  const resuming = back.resumeStream()
  while (!words(back.lastMessage).startsWith('One two three') && back.error === undefined)
    await new Promise((resolve) => setTimeout(resolve, 5))
  expect(back.error).toBe(undefined)
  await kit.runtime.threads.stop(thread!.id)
  await resuming
  expect(words(back.lastMessage)).toContain('One two three')
})

test('a long history of many answers is found from its end', async () => {
  const words = scripted(() => says('short'))
  const short = await startChatClientKit({
    runtime: {
      agents: [
        defineAgent({
          name: 'desk',
          sideA: { prompt: definePrompt({ name: 'p', prompt: 'x', model: words }) },
        }),
      ],
    },
  })
  const chat = short.chat('ada', { id: 'long' })
  for (let round = 0; round < 40; round++) await chat.sendMessage({ text: `round ${round}` })
  expect(chat.messages).toHaveLength(80)
  const thread = (await short.runtime.threads.byClientId('acme', 'long'))!
  expect(thread.seq).toBeGreaterThan(256)
  expect(new Set(chat.messages.map(({ id }) => id)).size).toBe(80)
  await short.stop()
})
