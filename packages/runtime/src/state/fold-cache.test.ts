import { afterEach, expect, test } from 'vitest'
import { calls, scripted, waits } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryStore,
  type EmbeddedRuntime,
  type Store,
} from '../index.ts'

let runtime: EmbeddedRuntime | undefined

afterEach(async () => {
  await runtime?.stop({ graceMs: 0 })
  runtime = undefined
})

const giveUp = defineTool({
  name: 'give_up',
  description: 'Ends the session without success.',
  risk: 'read_only',
  execute: () => 'The shop is closed.',
})

const agent = defineAgent({
  name: 'clerk',
  sideA: {
    prompt: definePrompt({
      name: 'clerk',
      prompt: 'Serve.',
      model: scripted(({ messages }) =>
        messages.length === 1 ? calls('give_up', {}) : waits(Infinity),
      ),
      tools: [giveUp],
    }),
    sessionFail: { name: giveUp },
  },
})

/** A store that can hold back one answer: the head of a thread as it was when it was asked for. */
function slowHeads(): {
  readonly store: Store
  /** Holds back the next head that is read; `isAsked` resolves when it is. */
  holdNext(): { readonly isAsked: Promise<void>; release(): void }
} {
  const store = memoryStore()
  let held: { ask(): void; readonly released: Promise<void> } | undefined
  const head: Store['head'] = async (threadId) => {
    const own = held
    held = undefined
    const row = await store.head(threadId)
    own?.ask()
    await own?.released
    return row
  }
  return {
    store: new Proxy(store, {
      get(target, name) {
        if (name === 'head') return head
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function'
          ? (member as (...args: unknown[]) => unknown).bind(target)
          : member
      },
    }),
    holdNext() {
      let ask!: () => void
      let release!: () => void
      const isAsked = new Promise<void>((resolve) => (ask = resolve))
      const released = new Promise<void>((resolve) => (release = resolve))
      held = { ask, released }
      return { isAsked, release }
    },
  }
}

test('a state is never paired with the head from before its latest events', async () => {
  const { store, holdNext } = slowHeads()
  runtime = await createRuntime({ agents: [agent], store })
  await runtime.start()
  const { threads } = runtime
  const { id } = await threads.create({ agent: 'clerk' })
  expect(await threads.run(id, 'Are you open?')).toMatchObject({ outcome: 'failed' })
  await runtime.idle()
  expect((await threads.get(id)).lifecycle).toBe('failed')

  const hold = holdNext()
  const settled = threads.settled(id)
  await hold.isAsked // the head of the failed thread
  const { seq } = await threads.send(id, 'Please try again.')
  for await (const { event } of runtime.subscribe(id, { after: String(seq) }))
    if (event.type === 'session_start') break
  await threads.messages(id) // folds the events of the new session
  hold.release()
  await threads.stop(id)
  expect(await settled).toMatchObject({ outcome: 'stopped' })
})
