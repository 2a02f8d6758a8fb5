// What the simulation has found, each as small as it gets.
import { expect, test } from 'vitest'
import { manualClock, seededRandom } from '@skein/base'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  defineHook,
  definePrompt,
  defineTool,
  memoryStore,
  type AgentDefinition,
  type Commit,
  type EmbeddedRuntime,
  type HookDefinition,
  type PromptTool,
  type Store,
  type ToolDefinition,
} from '@skein/runtime'
import { manualTimers } from '@skein/runtime/testing'
import { crashStore, seededScheduler, type Lane } from '../../src/testing/simulation.ts'

interface Stage {
  readonly store: Store
  readonly errors: unknown[]
  /** Another runtime on the same store; it dies at the first commit with this point. */
  open(dies?: {
    readonly point: string
    readonly moment: 'before' | 'after'
  }): Promise<EmbeddedRuntime>
  /** Lets everything happen that can. */
  play(): Promise<void>
}

function stage(agent: AgentDefinition): Stage {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const timers = manualTimers(clock)
  const store = memoryStore({ clock })
  const scheduler = seededScheduler({ random: seededRandom(1) })
  const errors: unknown[] = []
  let lane: Lane | undefined
  let count = 0
  return {
    store,
    errors,
    async open(dies) {
      clock.advance(60_000) // the leases of whoever died before have ended
      const own = scheduler.lane('runtime')
      lane = own
      const crashAt = ({ point }: Commit) =>
        point.split('+').includes(dies?.point ?? '') ? dies?.moment : undefined
      const runtime = await createRuntime({
        agents: [agent],
        store: crashStore(store, { lane: own, crashAt, onCrash: () => own.kill() }),
        clock,
        timers,
        ids: () => `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`,
        onError: (error) => errors.push(error),
      })
      await runtime.start()
      return runtime
    },
    async play() {
      for (let steps = 0; await scheduler.step(); steps++)
        if (steps > 1000) throw new Error(`${lane?.name} comes to no end`)
    },
  }
}

function agentOf(
  script: readonly ScriptStep[],
  tools: readonly ToolDefinition[],
  more: { readonly parallel?: boolean; readonly hooks?: readonly HookDefinition[] } = {},
): AgentDefinition {
  const { parallel = false, hooks = [] } = more
  const model = scripted(script)
  const prompt = definePrompt({
    name: 'p',
    prompt: '',
    model,
    tools,
    parallelToolCalls: parallel,
    hooks,
  })
  return defineAgent({ name: 'a', sideA: { prompt } })
}

const look = defineTool({ name: 'look', description: '', risk: 'read_only', execute: () => 'seen' })
const pay = (paid: () => void): ToolDefinition =>
  defineTool({
    name: 'pay',
    description: '',
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
    execute: paid,
  })

test('with parallel calls, those after one that waits are made meanwhile, and once', async () => {
  const script = [[calls('pay'), calls('look')], says('Done.')]
  const { open, play, store } = stage(agentOf(script, [look, pay(() => {})], { parallel: true }))
  const runtime = await open()
  void runtime.threads.create({ agent: 'a', message: 'go' })
  await play()
  const [item] = await runtime.inbox.list()
  expect(item?.toolName).toBe('pay')
  const events = await store.events(item!.threadId)
  const ended = events.flatMap(({ event }) =>
    event.type === 'tool_execution_end' ? event.toolName : [],
  )
  expect(ended).toEqual(['look'])
})

test('what the gates write of a call becomes true with its result, also when a hook commits', async () => {
  let paid = 0
  const hook = defineHook({
    id: 'counts',
    hook: 'after_tool_call_success',
    execute: (state) => state.setValue('counted', true),
  }) as HookDefinition
  const script = [calls('pay'), says('Done.')]
  const agent = agentOf(script, [pay(() => void paid++), look], { hooks: [hook] })
  const { open, play, store, errors } = stage(agent)
  const first = await open({ point: 'hook_after_tool_call_success', moment: 'after' })
  void first.threads.create({ agent: 'a', message: 'go' })
  await play()
  const { threadId, interruptId } = (await first.inbox.list())[0]!
  void first.inbox.approve({ threadId, interruptId, by: 'ann' })
  await play()
  const second = await open()
  await play()
  const [item] = await second.inbox.list()
  expect(item?.question).toMatchObject({ type: 'in_doubt', tool: 'pay' })
  expect(item?.kind).toBe('in_doubt')
  void second.inbox.settle({ threadId, interruptId: item!.interruptId, by: 'ann' }, 'applied')
  await play()
  expect({ errors, paid }).toEqual({ errors: [], paid: 1 })
  expect((await store.head(threadId))?.lifecycle).toBe('idle')
})

test('a drain that was fenced off within a tool ends quietly', async () => {
  const nosy = defineTool({
    name: 'nosy',
    description: '',
    risk: 'read_only',
    async execute(state) {
      await store.commit({ point: 'other', threads: [{ id: state.threadId, raisesEpoch: true }] }) // somebody else takes the thread
      await state.setStatus('looking')
    },
  })
  const { open, play, errors, store } = stage(agentOf([calls('nosy')], [nosy]))
  const runtime = await open()
  void runtime.threads.create({ agent: 'a', message: 'go' })
  await play()
  expect(errors).toEqual([])
})

test('a thread that is worked on without having been due is due, and taken up after a crash', async () => {
  const { open, play, store } = stage(agentOf([says('Lost.'), says('Done.')], []))
  const first = await open({ point: 'answer', moment: 'before' })
  void first.threads.create({ agent: 'a', message: 'go' })
  let id = ''
  // As when a thread was given up in the same moment in which mail came for it.
  const claim = store.claim.bind(store)
  store.claim = async (threadId, options) => {
    id = threadId
    await store.commit({ point: 'given up', threads: [{ id: threadId, wake: { exactly: null } }] })
    return claim(threadId, options)
  }
  await play()
  store.claim = claim
  expect((await store.head(id))?.lifecycle).toBe('running')
  await open()
  await play()
  expect((await store.head(id))?.lifecycle).toBe('idle')
})

test('a call that may run again and is cut while its hook runs has one result', async () => {
  const store = memoryStore()
  const commit = store.commit.bind(store)
  let isCutting = (): void => {}
  const cutting = new Promise<void>((resolve) => (isCutting = resolve))
  const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20))
  // The hook ends while the cut is committed, and the end of its call would be committed after that.
  store.commit = async (one: Commit) => {
    if (one.point === 'cut') isCutting()
    if (one.point === 'cut' || one.point === 'call_end') await moment()
    return commit(one)
  }
  const hook = defineHook({
    id: 'slow',
    hook: 'after_tool_call_success',
    async execute(state) {
      await runtime.threads.send(state.threadId, { text: 'stop that', ifBusy: 'cut' })
      await cutting
    },
  }) as HookDefinition
  const script = [[calls('look'), calls('pay')], says('Done.')]
  const agent = agentOf(script, [look, pay(() => {})], { parallel: true, hooks: [hook] })
  const runtime = await createRuntime({ agents: [agent], store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  await runtime.threads.run(id, 'go')
  const ended = (await store.events(id)).flatMap(({ event }) =>
    event.type === 'tool_execution_end' ? event.toolName : [],
  )
  expect(ended.toSorted()).toEqual(['look', 'pay'])
  await runtime.stop({ graceMs: 0 })
})

test('a session that fails while its subagent takes a message asks it to stop, and ends', async () => {
  const store = memoryStore()
  const commit = store.commit.bind(store)
  const claim = store.claim.bind(store)
  let isFailing = (): void => {}
  let hasStarted = (): void => {}
  const failing = new Promise<void>((resolve) => (isFailing = resolve))
  const started = new Promise<void>((resolve) => (hasStarted = resolve))
  // The child takes its message between the moment when its parent looks and the commit that withdraws the message.
  store.claim = async (id, options) => {
    if ((await store.head(id))?.parentId) await failing
    return claim(id, options)
  }
  store.commit = async (one: Commit) => {
    if (one.point.includes('session_failing')) {
      isFailing()
      await started
    }
    const result = await commit(one)
    const isChild = (await store.head(one.threads[0]?.id ?? ''))?.parentId
    if (isChild && one.point.startsWith('session_start')) hasStarted()
    return result
  }
  const prompt = (name: string, model: ReturnType<typeof scripted>, tools: PromptTool[]) =>
    definePrompt({ name, prompt: '', model, tools })
  const child = defineAgent({
    name: 'child',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'child',
    sideA: { prompt: prompt('c', scripted([says('Hm.')]), []) },
    sideB: {
      prompt: prompt('d', scripted([calls('look')]), [look]),
      sessionStop: { name: 'look' },
    },
  })
  const parent = defineAgent({
    name: 'a',
    sideA: {
      prompt: prompt('p', scripted([calls('child', { message: 'go' }), says('Claimed.')]), [
        { name: child, blocking: false },
        pay(() => {}),
        look,
      ]),
    },
    taskClass: {
      name: 'proven',
      verifiers: [],
      needs: [{ type: 'tool_result', source: 'pay' }],
      repair: { max: 0 },
    },
  })
  const runtime = await createRuntime({ agents: [parent], store })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  const { outcome } = await runtime.threads.run(id, 'go')
  expect(outcome).toBe('failed')
  const log = await store.events(id)
  expect(log.filter(({ event }) => event.type === 'session_failing')).toHaveLength(1)
  await runtime.stop({ graceMs: 0 })
})

/** Opens a runtime; before the first commit whose point matches, a thread changes as `before` says. */
async function disturbed(
  agent: AgentDefinition,
  point: string,
  before: (runtime: EmbeddedRuntime, threadId: string, store: Store) => Promise<unknown>,
): Promise<{ readonly runtime: EmbeddedRuntime; readonly errors: unknown[]; readonly id: string }> {
  const store = memoryStore()
  const commit = store.commit.bind(store)
  let isDone = false
  store.commit = async (one: Commit) => {
    if (one.point === point && !isDone) {
      isDone = true
      await before(runtime, one.threads[0]!.id, store)
    }
    return commit(one)
  }
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const runtime = await createRuntime({ agents: [agent], store, onError })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  return { runtime, errors, id }
}

test('the result of a call that is held back is stored when the thread is terminated meanwhile', async () => {
  const agent = agentOf([calls('look'), says('Done.')], [look])
  // As another process does, of which this one has not heard yet.
  const end = async (_: EmbeddedRuntime, id: string, store: Store): Promise<void> => {
    const at = new Date().toISOString()
    const append = [{ type: 'thread_terminated', at } as const]
    await store.commit({
      point: 'terminate_thread',
      threads: [{ id, append, head: { lifecycle: 'terminated' }, wake: { by: Date.now() } }],
    })
  }
  const { runtime, errors, id } = await disturbed(agent, 'call_end+step_end', end)
  expect(await runtime.threads.run(id, 'go')).toMatchObject({ outcome: 'terminated' })
  await runtime.idle()
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  expect(events.filter(({ type }) => type === 'tool_execution_end')).toMatchObject([
    { outcome: 'success', result: 'seen' },
  ])
  expect(errors).toEqual([])
  await runtime.stop({ graceMs: 0 })
})

test('an answer that has to be judged again, because a message was edited meanwhile, is no error', async () => {
  const send = defineTool({
    name: 'send',
    description: '',
    risk: 'write_low_risk',
    idempotent: true,
    rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
    execute: () => 'sent',
  })
  const base = agentOf([calls('send'), says('Claimed.'), says('Claimed again.')], [send, look])
  const needs = [{ type: 'tool_result', source: 'look' }] as const
  const taskClass = { name: 'proven', verifiers: [], needs, repair: { max: 0 } }
  const agent = defineAgent({ ...base, taskClass } as never)
  const edit = async ({ threads }: EmbeddedRuntime, id: string): Promise<void> => {
    const [first] = await threads.messages(id)
    await threads.updateMessage(id, first!.message.id, 'go now')
  }
  const { runtime, errors, id } = await disturbed(agent, 'answer+undo', edit)
  const { outcome } = await runtime.threads.run(id, 'go')
  expect(outcome).toBe('failed')
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  const said = events.flatMap((event) =>
    event.type === 'message_added' && event.side === 'a' ? JSON.stringify(event.message) : [],
  )
  expect(said.at(-1)).toContain('Claimed again.')
  expect(events.filter(({ type }) => type === 'write_undone')).toMatchObject([{ status: 'done' }])
  expect(events.filter(({ type }) => type === 'interrupt_opened')).toEqual([])
  expect(errors).toEqual([])
  await runtime.stop({ graceMs: 0 })
})
