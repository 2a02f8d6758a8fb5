import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AssistantMessage, type Message, messageToJSON, UserMessage } from '@skein/ai'
import { type MessageJSON, sha256Hex } from '@skein/base'
import type { ModelRequested, RuntimeEvent, StoredEvent } from '../contract/event.ts'
import { KernelFold } from '../state/fold.ts'
import { deltaOf, frameOf, storedIn } from './log.ts'
import { modelLogs, rebuildRequest } from './read-log.ts'

const at = '2026-01-01T00:00:00.000Z'
const frame = frameOf({ system: 'Be kind.', tools: [{ name: 't' }], params: { temperature: 0 } })
const blob = async (hash: string) => (hash === frame.hash ? frame.bytes : undefined)

test('equal frames are one blob, whatever the order of their fields', () => {
  const other = frameOf({ params: { temperature: 0 }, tools: [{ name: 't' }], system: 'Be kind.' })
  expect(other).toEqual(frame)
  expect(frame.hash).toBe(sha256Hex(frame.bytes))
  expect(frameOf({ system: null, tools: [], params: {} }).hash).not.toBe(frame.hash)
  expect(frameOf({ system: '\ud800', tools: [], params: {} }).bytes.length).toBeGreaterThan(0)
})

test('a stored message goes by id, another one is written out once', async () => {
  const log = new TestLog()
  const [one, two] = [log.add('one'), log.add('two')]
  const note = new UserMessage('note', { id: 'note', timestamp: new Date(at) })
  const first = log.request([one, note])
  expect(first).toMatchObject({ adds: [one.id, { message: { id: 'note' } }] })
  expect(first.previous).toBe(undefined)
  const second = log.request([one, note, two])
  expect(second).toMatchObject({ previous: { logId: first.logId, keeps: 2 }, adds: [two.id] })
  const third = log.request([two, note])
  expect(third.adds).toEqual([two.id, expect.stringMatching(/^note#/)])
  expect(await log.rebuilt(third)).toEqual([two, note].map(messageToJSON))
})

test('results of calls go by id', async () => {
  const log = new TestLog()
  const calls = [{ toolCallId: 'c', toolName: 't', arguments: {} }]
  const asked = log.addMessage(
    new AssistantMessage('', calls, { id: 'm', timestamp: new Date(at) }),
  )
  log.push({
    type: 'tool_execution_end',
    at,
    turnId: 't',
    toolCallId: 'c',
    toolName: 't',
    outcome: 'success',
    result: 'x'.repeat(1000),
  })
  const results = log.fold.state.entries[0]!.results!
  const request = log.request([asked, results])
  expect(request.adds).toEqual(['m', 'm.results'])
  expect(await log.rebuilt(request)).toEqual([asked, results].map(messageToJSON))
})

test('a changed message is seen as it was at the time', async () => {
  const log = new TestLog()
  const before = log.add('before')
  const first = log.request([before])
  log.push({
    type: 'message_updated',
    at,
    messageId: before.id,
    message: toJson(new UserMessage('after', { id: before.id, timestamp: new Date(at) })),
  })
  const second = log.request([log.fold.state.entries[0]!.message])
  const third = log.request([before])
  expect((await log.rebuilt(first))[0]).toMatchObject({ content: [{ text: 'before' }] })
  expect((await log.rebuilt(second))[0]).toMatchObject({ content: [{ text: 'after' }] })
  expect((await log.rebuilt(third))[0]).toMatchObject({ content: [{ text: 'before' }] })
})

test('what is put together again is what was sent', async () => {
  const action = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), text: fc.string() }) },
    fc.record({ do: fc.constant('update' as const), index: fc.nat(20), text: fc.string() }),
    fc.record({
      do: fc.constant('request' as const),
      from: fc.nat(3),
      // Which messages are sent in other words, and which not at all.
      changed: fc.uniqueArray(fc.nat(20), { maxLength: 3 }),
      left: fc.uniqueArray(fc.nat(20), { maxLength: 3 }),
      note: fc.option(fc.constantFrom('n1', 'n2')),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      const log = new TestLog()
      const sent: [ModelRequested, unknown][] = []
      for (const one of actions) {
        const messages = log.fold.state.entries.map(({ message }) => message)
        if (one.do === 'add') log.add(one.text)
        else if (one.do === 'update') {
          const { id } = messages[one.index] ?? {}
          if (id === undefined) continue
          const message = toJson(new UserMessage(one.text, { id, timestamp: new Date(at) }))
          log.push({ type: 'message_updated', at, messageId: id, message })
        } else {
          const list = messages
            .filter((_, index) => index >= one.from && !one.left.includes(index))
            .map((message, index) =>
              one.changed.includes(index) ? inOtherWords(message) : message,
            )
          if (one.note)
            list.push(new UserMessage(one.note, { id: 'note', timestamp: new Date(at) }))
          sent.push([log.request(list), list.map(messageToJSON)])
        }
      }
      for (const [request, expected] of sent) expect(await log.rebuilt(request)).toEqual(expected)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 150 },
  )
})

test('500 steps write twice as much as 250, not four times', () => {
  const bytesOf = (steps: number) => {
    const log = new TestLog()
    let bytes = 0
    const views: Message[] = []
    for (let step = 0; step < steps; step++) {
      // One line as it is stored and one in other words, as two models that talk see them.
      views.push(log.add(`step ${step} ${'x'.repeat(200)}`), inOtherWords(log.add('y'.repeat(200))))
      // And a last line that is different every time.
      const last = new UserMessage(`status ${step}`, { id: 'status', timestamp: new Date(at) })
      bytes += JSON.stringify(log.request([...views, last])).length
    }
    return bytes
  }
  const [half, whole] = [bytesOf(250), bytesOf(500)]
  expect(whole / half).toBeLessThan(2.1)
  expect(whole / 500).toBeLessThan(2000)
})

test('the list of requests, with their answers', async () => {
  const log = new TestLog()
  const request = log.request([log.add('x')])
  log.push({
    type: 'model_answered',
    at,
    logId: request.logId,
    durationMs: 12,
    finishReason: 'stop',
    messageId: 'answer',
    costUsd: 0.1,
  })
  const open = log.request([])
  const summary = { logId: request.logId, durationMs: 12, finishReason: 'stop', costUsd: 0.1 }
  expect(modelLogs(log.events)).toMatchObject([summary, { logId: open.logId, model: 'm' }])
  expect(await rebuildRequest(log.events, request.logId, blob)).toMatchObject({
    ...summary,
    system: 'Be kind.',
    tools: [{ name: 't' }],
    params: { temperature: 0 },
    messageId: 'answer',
  })
})

test('what is gone is named', async () => {
  const log = new TestLog()
  const { logId } = log.request([log.add('x')])
  const refused = { code: 'LOG_NOT_FOUND' }
  await expect(rebuildRequest(log.events, 'none', blob)).rejects.toMatchObject(refused)
  await expect(rebuildRequest(log.events, logId, async () => undefined)).rejects.toThrow('frame')
  const cut = log.events.slice(1)
  await expect(rebuildRequest(cut, logId, blob)).rejects.toMatchObject(refused)
})

/** A log that is folded as it grows. */
class TestLog {
  readonly events: StoredEvent[] = []
  readonly fold: KernelFold = new KernelFold()
  #count = 0

  push(event: RuntimeEvent): void {
    const stored = { seq: this.events.length + 1, event }
    this.events.push(stored)
    this.fold.push(stored)
  }

  add(text: string): Message {
    const id = `m${this.#count++}`
    return this.addMessage(new UserMessage(text, { id, timestamp: new Date(at) }))
  }

  addMessage(message: Message): Message {
    this.push({ type: 'message_added', at, turnId: 't', side: 'b', message: toJson(message) })
    return this.fold.state.entries.at(-1)!.message
  }

  request(messages: readonly Message[]): ModelRequested {
    const { state } = this.fold
    const event: ModelRequested = {
      type: 'model_requested',
      at,
      logId: `log${this.#count++}`,
      stepId: 's',
      turnId: 't',
      attempt: 1,
      side: 'a',
      prompt: 'p',
      provider: 'scripted',
      model: 'm',
      frame: frame.hash,
      ...deltaOf(state.lastLog.a, messages, storedIn(state)),
    }
    // As a store keeps it: plain JSON.
    this.push(JSON.parse(JSON.stringify(event)) as ModelRequested)
    return event
  }

  async rebuilt({ logId }: ModelRequested): Promise<readonly unknown[]> {
    return (await rebuildRequest(this.events, logId, blob)).messages
  }
}

function inOtherWords({ id, timestamp, text }: Message): Message {
  return new AssistantMessage(`other: ${text}`, undefined, { id, timestamp })
}

function toJson(message: Message): MessageJSON {
  return messageToJSON(message)
}
