import { expect, test } from 'vitest'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryStore,
  type Store,
} from '../index.ts'

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Lets a test act before a commit reaches the store, and before its writer learns that it was stored. */
function watchedStore(
  before: (point: string) => Promise<unknown> | void,
  after: (events: readonly string[]) => Promise<unknown> | void,
): Store {
  const store = memoryStore()
  return new Proxy(store, {
    get(target, name) {
      if (name !== 'commit') {
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      }
      return async (commit: Parameters<Store['commit']>[0]) => {
        await before(commit.point)
        const result = await target.commit(commit)
        await after(commit.threads.flatMap(({ append = [] }) => append.map(({ type }) => type)))
        return result
      }
    },
  })
}

test('a stop while an answer is being stored ends the calls of that answer too', async () => {
  let stop: Promise<unknown> | undefined
  let stored = (): void => {}
  const isStored = new Promise<void>((resolve) => (stored = resolve))
  let tell = (): void => {}
  const isTold = new Promise<void>((resolve) => (tell = resolve))
  const store = watchedStore(
    async (point) => {
      if (point === 'answer+call_start') {
        // The stop is stored just before the answer, so that the answer has to be stored by itself.
        stop = runtime.threads.stop(id)
        await isStored
      }
      if (point !== 'answer') return
      // The work is aborted while the answer is on its way to the store.
      tell()
      await later(30)
    },
    (events) => {
      if (!events.includes('stop_requested')) return
      stored()
      return isTold
    },
  )
  const note = defineTool({
    name: 'note',
    description: '',
    risk: 'write_low_risk',
    execute: () => 'noted',
  })
  const model = scripted([[calls('note', {})], says('Done.')])
  const prompt = definePrompt({ name: 'p', prompt: '', model, tools: [note] })
  const agents = [defineAgent({ name: 'a', sideA: { prompt } })]
  const runtime = await createRuntime({ agents, store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  const { outcome } = await runtime.threads.run(id, 'go')
  await stop
  await runtime.idle()
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  expect(outcome).toBe('stopped')
  const answers = events.filter((event) => event.type === 'message_added' && event.finishReason)
  expect(answers).toHaveLength(1)
  const ends = events.filter(({ type }) => type === 'tool_execution_end')
  expect(ends).toMatchObject([{ toolName: 'note', outcome: 'interrupted' }])
  await runtime.stop()
})
