import { setTimeout } from 'node:timers/promises'
import { readUIMessageStream, uiMessageChunkSchema, type UIMessage, type UIMessageChunk } from 'ai'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toUIMessages, UIChunkReader } from '@skein/threads/ai-sdk'
import type { Thread } from '@skein/threads'
import { startChatClientKit, type ChatClientKit } from './chat-client.ts'
import { plain } from './chat-kit.ts'

const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100

let kit: ChatClientKit
beforeAll(async () => {
  kit = await startChatClientKit()
})
afterAll(() => kit.stop())

interface Turn {
  readonly text: string
  /** Decisions about what is asked, in order; the last goes on for ever. */
  readonly decisions: readonly boolean[]
  /** After how many chunks connections break. Those that do not come to it are read to the end. */
  readonly cuts: readonly number[]
}

const turn: fc.Arbitrary<Turn> = fc.record({
  text: fc.constantFrom(
    'hello',
    'note',
    'note twice',
    'refund',
    'refund both',
    'locate',
    'work',
    'work and pay',
    'silence',
    'ünï "quoted"\n\nlines',
  ),
  decisions: fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }),
  cuts: fc.array(fc.integer({ min: 1, max: 25 }), { maxLength: 3 }),
})

test('what a page ends up with is what the thread holds, however often its connection breaks', async () => {
  let number = 0
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), async (turns) => {
      const page = new TestPage(`law-${++number}`)
      for (const one of turns) await page.say(one)
      expect(plain(page.messages).map(settled)).toEqual(await page.history())
      expect(plain(page.messages).map(bare)).toEqual(await page.document())
    }),
    { numRuns },
  )
}, 120_000)

test('a page that opens at any moment of an answer ends up with the whole answer', async () => {
  let number = 0
  const delay = fc.integer({ min: 0, max: 12 })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('hello', 'note twice', 'refund', 'work and pay', 'fail'),
      delay,
      delay,
      async (text, beforeOpening, beforeResuming) => {
        const id = `opens-${++number}`
        const path = `/agents/desk/chat/${id}`
        const messages = [{ id: `${id}-m`, role: 'user', parts: [{ type: 'text', text }] }]
        const body = JSON.stringify({ id, messages, trigger: 'submit-message' })
        const sent = await kit.fetch('ada', '/agents/desk/chat', { method: 'POST', body, headers })
        await setTimeout(beforeOpening)
        const opened = await read(path)
        await setTimeout(beforeResuming)
        const page = kit.chat('ada', { id, ...opened })
        await page.resumeStream()
        await sent.text()
        if (text !== 'fail') expect(page.error).toBe(undefined)
        expect(plain(page.messages)).toEqual((await read(path)).messages)
      },
    ),
    { numRuns },
  )
}, 120_000)

const headers = { 'content-type': 'application/json' }

async function read(path: string): Promise<{ messages: UIMessage[]; seq: number }> {
  return (await (await kit.fetch('ada', path)).json()) as { messages: UIMessage[]; seq: number }
}

/** A page that reads with the SDK's own reader. */
class TestPage {
  messages: UIMessage[] = []
  readonly #id: string
  #cuts: number[] = []

  constructor(id: string) {
    this.#id = id
  }

  async say({ text, decisions, cuts }: Turn): Promise<void> {
    this.#cuts = [...cuts]
    const id = `${this.#id}-${this.messages.length}`
    this.messages.push({ id, role: 'user', parts: [{ type: 'text', text }] })
    await this.#post()
    for (let round = 0; this.#decide(decisions[Math.min(round, decisions.length - 1)]!); round++)
      await this.#post()
  }

  async history(): Promise<unknown> {
    const response = await kit.fetch('ada', `/agents/desk/chat/${this.#id}`)
    return ((await response.json()) as { messages: unknown }).messages
  }

  /** The same from the thread's own document, without what only a chat has. */
  async document(): Promise<unknown> {
    const { id } = (await kit.runtime.threads.byClientId('acme', this.#id))!
    const document = await kit.runtime.threads.document(id)
    const turns = document.turns.filter((one) => !('is_silent' in one && one.is_silent === true))
    return toUIMessages({ ...document, turns } as Thread).map((message) =>
      bare(plain(message) as UIMessage),
    )
  }

  /** Answers what is asked; false when nothing is. */
  #decide(approved: boolean): boolean {
    const last = this.messages.at(-1)
    let isAsked = false
    const parts = (last?.parts ?? []).map((part) => {
      const tool = part as { state?: string; approval?: object; type: string }
      if (tool.state === 'approval-requested') {
        isAsked = true
        return { ...tool, state: 'approval-responded', approval: { ...tool.approval, approved } }
      }
      if (tool.type !== 'tool-locate' || tool.state !== 'input-available') return part
      isAsked = true
      return { ...tool, state: 'output-available', output: { city: 'Graz' } }
    })
    if (isAsked && last) this.messages[this.messages.length - 1] = { ...last, parts } as UIMessage
    return isAsked
  }

  async #post(): Promise<void> {
    const last = this.messages.at(-1)
    const body = JSON.stringify({
      id: this.#id,
      messages: this.messages,
      trigger: 'submit-message',
      messageId: last?.role === 'assistant' ? last.id : undefined,
    })
    const headers = { 'content-type': 'application/json' }
    const response = await kit.fetch('ada', '/agents/desk/chat', { method: 'POST', headers, body })
    const before = last?.role === 'assistant' ? last : undefined
    let isWhole = await this.#read(response, before)
    while (!isWhole) {
      const again = await kit.fetch('ada', `/agents/desk/chat/${this.#id}/stream`)
      if (again.status === 204) {
        this.messages = (await this.history()) as UIMessage[]
        return
      }
      isWhole = await this.#read(again, undefined)
    }
  }

  /** Reads a response; false when the connection broke before its end. */
  async #read(response: Response, before: UIMessage | undefined): Promise<boolean> {
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    const { chunks, isWhole } = await readChunks(response, this.#cuts.shift() ?? Infinity)
    const stream = new ReadableStream<UIMessageChunk>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        controller.close()
      },
    })
    const message = before && structuredClone(before)
    let state: UIMessage | undefined
    for await (const next of readUIMessageStream({
      stream,
      terminateOnError: true,
      ...(message && { message }),
    }))
      state = next
    if (state) this.#keep(plain(state))
    return isWhole
  }

  #keep(message: UIMessage): void {
    const index = this.messages.findIndex(({ id }) => id === message.id)
    if (index >= 0) this.messages[index] = message
    else this.messages.push(message)
  }
}

async function readChunks(
  response: Response,
  cut: number,
): Promise<{ chunks: UIMessageChunk[]; isWhole: boolean }> {
  const reader = new UIChunkReader()
  const chunks: UIMessageChunk[] = []
  const schema = uiMessageChunkSchema()
  for await (const bytes of response.body!) {
    for (const chunk of reader.push(bytes)) {
      const checked = await schema.validate?.(chunk)
      if (!checked?.success) throw new Error(`The SDK refuses ${JSON.stringify(chunk)}`)
      chunks.push(chunk as UIMessageChunk)
    }
    // Leaving the loop closes the connection.
    if (chunks.length >= cut && !reader.isDone) return { chunks, isWhole: false }
  }
  expect(reader.isDone).toBe(true)
  return { chunks, isWhole: true }
}

/** A message without data of the application and without what only the stream says. */
function bare(message: UIMessage): UIMessage {
  const { skein: _, ...metadata } = (message.metadata ?? {}) as { skein?: unknown }
  const parts = message.parts.filter(({ type }) => !type.startsWith('data-')).map(withoutAsking)
  const rest = Object.keys(metadata).length > 0 ? { metadata } : {}
  return { id: message.id, role: message.role, parts, ...rest }
}

function settled(message: UIMessage): UIMessage {
  return { ...message, parts: message.parts.map(withoutAsking) }
}

/** What a child asked was shown on the call that made it; once it is answered, the child's thread has it. */
function withoutAsking(part: UIMessage['parts'][number]): UIMessage['parts'][number] {
  if (part.type !== 'tool-worker') return part
  const { approval: _, ...rest } = part as { approval?: unknown } & typeof part
  return rest as typeof part
}
