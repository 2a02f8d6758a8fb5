import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRegistry,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStore,
  type RuntimeEvent,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  playBack,
  type PlayBackReport,
  readRecording,
  type RecordedThread,
  recordedThread,
} from '@skein/evals'

/** Definitions of one agent with a tool whose schema may change what a model has sent. */
function desk(change: (text: string) => string = (text) => text) {
  const book = defineTool({
    name: 'book',
    description: 'Books.',
    risk: 'read_only',
    args: z.object({ at: z.string().transform(change), code: z.string().transform(change) }),
    execute: async () => 'booked',
  })
  const model = scripted([
    calls('book', { at: '2026-01-01T10:00:00Z', code: 'v1.2' }),
    says('Booked.'),
    says('Bye.'),
  ])
  return [defineAgent({ name: 'desk', instructions: 'You book.', model, tools: [book] })]
}

async function recordedDesk(): Promise<RecordedThread> {
  const store = memoryStore()
  const runtime = await createRuntime({ agents: desk(), store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(id, 'Book a table')
  await runtime.threads.run(id, 'Thanks')
  const recorded = await readRecording(store, id)
  await runtime.stop()
  return recorded
}

async function played(
  recorded: RecordedThread,
  change?: (text: string) => string,
): Promise<PlayBackReport> {
  return playBack(recorded, { registry: createRegistry({ agents: desk(change) }) })
}

/** The recording without its events from an index on, and with another status at its end. */
async function cutAt(
  recorded: RecordedThread,
  count: number,
  last?: RuntimeEvent,
): Promise<RecordedThread> {
  const events = recorded.events.slice(0, count)
  const added = last ? [{ seq: count + 1, event: last }] : []
  const { blobs, head } = recorded
  return recordedThread({ events: [...events, ...added], children: [], blobs, head })
}

test.each([
  ['a date', (text: string) => text.replace('2026-01-01', '2026-01-02')],
  ['a text like an encrypted one', (text: string) => text.replace('v1.2', 'v2.0-x')],
])('a schema that shifts %s in the arguments of a tool is a difference', async (_, change) => {
  const recorded = await recordedDesk()
  expect((await played(recorded)).difference).toBeUndefined()
  const { isSame, difference } = await played(recorded, change)
  expect(isSame).toBe(false)
  expect(difference?.recorded?.type).toBe('tool_execution_start')
})

test('an event after the end of a thread that rests is a difference', async () => {
  const recorded = await recordedDesk()
  const end = recorded.events.findLastIndex(({ event }) => event.type === 'step_end')
  const { at } = recorded.events[end]!.event
  const rested = await cutAt(recorded, end, { type: 'status_changed', at, status: 'idle' })
  const { difference } = await played(rested)
  expect(difference).toMatchObject({ seq: end + 2, produced: { type: 'step_end' } })
})

test('a request after the end of a thread that rests is a difference', async () => {
  const recorded = await recordedDesk()
  const asked = recorded.events.findLastIndex(({ event }) => event.type === 'model_requested')
  const { at } = recorded.events[asked]!.event
  const rested = await cutAt(recorded, asked, { type: 'status_changed', at, status: 'idle' })
  const { difference } = await played(rested)
  expect(difference?.message).toBe('The loop asked a model, and the log has no such request.')
})

test('a thread that was recorded while it worked plays back', async () => {
  const recorded = await recordedDesk()
  for (const type of ['model_requested', 'step_end']) {
    const last = recorded.events.findLastIndex(({ event }) => event.type === type)
    expect(await played(await cutAt(recorded, last))).toMatchObject({ isSame: true })
  }
})
