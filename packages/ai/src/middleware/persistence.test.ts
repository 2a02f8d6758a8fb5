import { manualClock } from '@skein/base'
import { expect, test } from 'vitest'
import type { UPPError } from '../contract/error.ts'
import { llm, type LLMOptions } from '../llm.ts'
import { Image } from '../media/image.ts'
import { UserMessage } from '../contract/message.ts'
import { messageToJSON } from '../contract/message-json.ts'
import { calls, fails, says, scripted, waits } from '../testing/index.ts'
import {
  loadThread,
  memoryTurns,
  persistenceMiddleware,
  type PersistenceOptions,
} from './persistence.ts'

function setup(model: LLMOptions['model'], options: Partial<PersistenceOptions> = {}) {
  const store = memoryTurns()
  const middleware = [persistenceMiddleware({ store, threadId: 't1', ...options })]
  return { store, instance: llm({ model, middleware, clock: manualClock(0) }) }
}

test('a conversation goes on from what was saved, bytes included', async () => {
  const model = scripted([says('A cat.'), says('Grey.')])
  const { store, instance } = setup(model)
  const picture = Image.fromBytes(new Uint8Array([1, 2, 3]), 'image/png').toBlock()
  await instance.generate(new UserMessage([picture]))
  const rows = JSON.parse(JSON.stringify(store.load('t1'))) as ReturnType<typeof store.load>
  const thread = await loadThread({ append() {}, load: () => rows }, 't1')
  await instance.stream(thread, 'What colour?').turn
  expect(model.requests[1]?.messages.map(({ text }) => text)).toEqual([
    '',
    'A cat.',
    'What colour?',
  ])
  expect(model.requests[1]?.messages[0]?.images[0]?.source).toEqual({
    type: 'bytes',
    data: new Uint8Array([1, 2, 3]),
  })
  expect(store.load('t1')).toMatchObject([
    { status: 'complete', provider: 'scripted', startedAt: '1970-01-01T00:00:00.000Z' },
    { status: 'complete', stopReason: 'end_turn' },
  ])
  expect((await loadThread(store, 't1')).length).toBe(4)
})

test('UPP-140 a saved turn is plain data with ISO times, complete', async () => {
  const clock = manualClock(Date.UTC(2026, 0, 2, 3, 4, 5, 6))
  const step = () => {
    clock.advance(1500)
    return says('Hi.')
  }
  const { store, instance } = setup(scripted([step]))
  const turn = await instance.with({ clock }).generate('Hello')
  expect(store.load('t1')).toEqual([
    {
      status: 'complete',
      provider: 'scripted',
      modelId: 'script',
      messages: turn.messages.map((message) => messageToJSON(message)),
      usage: turn.usage,
      stopReason: 'end_turn',
      openCalls: [],
      startedAt: '2026-01-02T03:04:05.006Z',
      endedAt: '2026-01-02T03:04:06.506Z',
    },
  ])
})

test('of a failed call, what was produced is kept, and not taken up again', async () => {
  const now = { name: 'now', description: '', parameters: {}, run: () => 'noon' }
  const model = scripted([calls('now', {}), [says('It is'), fails('The line is dead.')]])
  const { store, instance } = setup(model)
  await expect(instance.with({ tools: [now] }).generate('Time?')).rejects.toThrow()
  expect(store.load('t1')).toMatchObject([
    {
      status: 'failed',
      error: { code: 'PROVIDER_ERROR', message: 'The line is dead.' },
      messages: [{ type: 'user' }, { type: 'assistant' }, { type: 'tool_result' }],
    },
  ])
  expect((await loadThread(store, 't1')).length).toBe(0)
  expect((await loadThread(store, 't1', { includePartial: true })).length).toBe(3)
})

test('a stream that fails in the middle keeps its text, a cancelled one says so', async () => {
  const { store, instance } = setup(scripted([[says('Half an'), waits(Infinity)]]))
  for await (const event of instance.stream('Hi'))
    if (event.type === 'text_delta' && event.delta.text === ' an') break
  expect(store.load('t1')).toMatchObject([
    {
      status: 'cancelled',
      error: { code: 'CANCELLED' },
      messages: [{}, { content: [{ type: 'text', text: 'Half an' }] }],
    },
  ])
})

test('a turn that cannot be saved fails the call and is not lost', async () => {
  const append = () => Promise.reject(new Error('disk full'))
  const saveErrors: unknown[] = []
  const { instance } = setup(scripted([says('Hello.')]), {
    store: { append, load: () => [] },
    onSaveError: (error) => saveErrors.push(error),
  })
  const error = (await instance.generate('Hi').catch((thrown: unknown) => thrown)) as UPPError
  expect(error.message).toContain('disk full')
  expect(error.turn?.response.text).toBe('Hello.')
  expect(saveErrors.map(String)).toEqual(['Error: disk full'])
})

test('a call that a later hook fails is one row', async () => {
  const store = memoryTurns()
  const picky = {
    name: 'picky',
    onEnd: () => {
      throw new Error('no')
    },
  }
  const middleware = [picky, persistenceMiddleware({ store, threadId: 't1' })]
  const instance = llm({ model: scripted([says('x')]), middleware })
  await expect(instance.generate('Hi')).rejects.toThrow('no')
  expect((await store.load('t1')).map(({ status }) => status)).toEqual(['complete'])
})
