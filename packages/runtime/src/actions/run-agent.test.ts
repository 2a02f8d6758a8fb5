import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  agent,
  type Agent,
  AgentState,
  type AgentStreamResult,
  type ExecutionContext,
  type ExecutionResult,
  type ExecutionStrategy,
  subagent,
} from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  type LLMRequest,
  type Message,
  type Tool,
  tool,
  type ToolContext,
  UserMessage,
} from '@skein/ai'
import { calls, fails, type ScriptFunction, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { toolFrom } from '../definitions/define-tool.ts'
import type { AgentDefinition, SideConfig } from '../definitions/agent-definition.ts'
import { foldKernel } from '../state/fold.ts'
import { createRuntime, type EmbeddedRuntime } from '../runtime.ts'
import type { RuntimeOptions } from '../runtime-options.ts'
import type { Commit } from '../store/commit.ts'
import type { Store } from '../store/store.ts'
import { memoryStore } from '../store/memory-store.ts'
import { manualTimers } from '../testing/simulation.ts'

const START = Date.UTC(2026, 0, 1)

/** One process: a runtime on a store that outlives it. */
async function boot(
  agents: readonly AgentDefinition[],
  store: Store,
  options: Partial<RuntimeOptions> = {},
) {
  const clock = manualClock(START)
  const timers = manualTimers(clock)
  const errors: unknown[] = []
  const runtime: EmbeddedRuntime = await createRuntime({
    agents,
    clock,
    timers,
    store: lasting(store),
    onError: (error) => void errors.push(error),
    ...options,
  })
  await runtime.start()
  return { runtime, timers, errors }
}

/** The store without its end: the next process opens it again. */
function lasting(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** What people see of a conversation: texts, calls and results, without ids and times. */
function visible(messages: readonly Message[]): unknown[] {
  const shown: unknown[] = []
  let isPrivate = false
  for (const message of messages) {
    const uap = message.metadata?.['uap']
    if (message.type === 'user') {
      isPrivate =
        uap?.['synthetic'] === true && uap['phase'] !== 'act' && uap['phase'] !== 'execute'
      if (uap?.['synthetic'] !== true) shown.push(`user: ${message.text}`)
    } else if (isPrivate) continue
    else if (message.type === 'assistant')
      shown.push({
        says: message.text,
        calls: message.toolCalls?.map(({ toolName, arguments: args }) => [toolName, args]),
      })
    else shown.push(message.results.map(({ result, isError = false }) => ({ result, isError })))
  }
  return shown
}

async function history(runtime: EmbeddedRuntime, id: string): Promise<unknown[]> {
  const { entries } = foldKernel(await runtime.threads.events(id))
  return visible(entries.flatMap(({ message, results }) => [message, results ?? []].flat()))
}

/** What happened outside of the log. */
interface World {
  readonly requests: LLMRequest[]
  readonly ran: string[]
}

const city = { type: 'object', properties: { city: { type: 'string' } } } as const

/** A tool that reads and one that writes; each run is noted. */
function toolsOf({ ran }: World): readonly Tool[] {
  const note = (name: string, risk: 'read_only' | 'write_low_risk') =>
    tool({
      name,
      description: name,
      parameters: city,
      risk,
      run: ({ city: where }, { toolCallId }: ToolContext) => {
        ran.push(`${name} ${toolCallId}`)
        return `${name}: ${String(where)}`
      },
    })
  return [note('look', 'read_only'), note('book', 'write_low_risk')]
}

/** Asks for both tools, then for one more, then answers. The answer depends on the request alone. */
const actor: ScriptFunction = ({ messages }) => {
  const rounds = messages.filter(({ type }) => type === 'tool_result').length
  if (rounds === 0)
    return [
      says('Let me see. '),
      calls('look', { city: 'Oslo' }, { id: 'c1' }),
      calls('book', { city: 'Oslo' }, { id: 'c2' }),
    ]
  if (rounds === 1) return calls('look', { city: 'Rome' }, { id: 'c3' })
  return says('Booked in Oslo.')
}

const thinker: ScriptFunction = (request, index) =>
  request.tools.length === 0 ? says('I should look first.') : actor(request, index)

const planner: ScriptFunction = (request, index) => {
  const last = request.messages.at(-1)
  const isPlanning = last?.metadata?.['uap']?.['phase'] === 'plan'
  const steps = [
    { id: 'one', description: 'Look around.', dependsOn: [] },
    { id: 'two', description: 'Say it.', dependsOn: ['one'] },
  ]
  return isPlanning ? says(JSON.stringify({ steps })) : actor(request, index)
}

/** Drafts with the model's own tool loop, then asks for a shorter text: two `generate` calls. */
const drafts: ExecutionStrategy = {
  name: 'drafts',
  async execute({ llm, input, state }: ExecutionContext): Promise<ExecutionResult> {
    const first = await llm.generate([...state.messages, input])
    if (first.openCalls.length > 0) return { turn: first, state: state.withMessages([input]) }
    const done = [...state.messages, input, ...first.messages]
    const prompt = new UserMessage('Shorter.', {
      metadata: { uap: { synthetic: true, phase: 'act' } },
    })
    const turn = await llm.generate(done, prompt)
    const messages = [input, ...first.messages, ...turn.messages]
    return { turn, state: state.withMessages(messages) }
  },
  stream(context: ExecutionContext): AgentStreamResult {
    const result = this.execute(context)
    return { result, abort: () => {}, async *[Symbol.asyncIterator]() {} }
  },
}

const kinds: Readonly<Record<string, readonly [ScriptFunction, ExecutionStrategy]>> = {
  loop: [actor, loop()],
  react: [thinker, react()],
  plan: [planner, plan()],
  custom: [actor, drafts],
}

/** An agent of a kind; its model and its tools note what they do in the world. */
function agentOf(kind: string, world: World): Agent {
  const [script, execution] = kinds[kind]!
  const model = scripted((request, index) => {
    world.requests.push(request)
    return script(request, index)
  })
  return agent({ model, system: 'Be brief.', tools: toolsOf(world), execution })
}

const newWorld = (): World => ({ requests: [], ran: [] })

function desk(sideA: SideConfig): AgentDefinition {
  return defineAgent({ name: 'desk', sideA })
}

describe.each(Object.keys(kinds))('%s as a side', (kind) => {
  test('has the visible history of a run in a program, and asks its model as often', async () => {
    const [here, there] = [newWorld(), newWorld()]
    const { state } = await agentOf(kind, there).generate('Oslo?', AgentState.initial())
    const { runtime, errors } = await boot([desk({ agent: agentOf(kind, here) })], memoryStore())
    const { id } = await runtime.threads.create({ agent: 'desk' })
    const { outcome, text } = await runtime.threads.run(id, 'Oslo?')
    expect({ outcome, text, errors }).toEqual({
      outcome: 'completed',
      text: 'Booked in Oslo.',
      errors: [],
    })
    expect(await history(runtime, id)).toEqual(visible(state.messages))
    expect(here.requests.length).toBe(there.requests.length)
    expect(here.requests[0]?.system).toBe('Be brief.')
    expect(here.ran.toSorted()).toEqual(there.ran.toSorted())
    const again = await runtime.threads.run(id, 'And now?')
    expect(again.outcome).toBe('completed')
    await runtime.stop()
  })

  test('a crash at any commit point changes nothing that people see, and repeats nothing', async () => {
    const points: string[] = []
    const base = await crashed(kind, undefined, (point) => points.push(point))
    expect(points).toContain('answer')
    expect(points).toContain('call_end')
    let inDoubt = 0
    for (const moment of ['before', 'after'] as const)
      for (const [at, point] of points.entries()) {
        const where = `${moment} commit ${at} (${point})`
        const it = await crashed(kind, { at, moment })
        expect(it.hasCrashed, where).toBe(true)
        expect(it.outcome, where).toBe('completed')
        const wasInDoubt = it.history.some((one) => JSON.stringify(one).includes('is unknown'))
        if (wasInDoubt) inDoubt++
        if (!wasInDoubt) expect(it.history, where).toEqual(base.history)
        else expect(it.history.length, where).toBe(base.history.length)
        // The model is asked again only when its answer was lost.
        const lost = point === 'answer' && moment === 'before' ? 1 : 0
        expect(it.requests, where).toBe(base.requests + lost)
        // A read may run again when its outcome was lost; a write never.
        expect(it.ran.filter((one) => one === 'book c2').length, where).toBeLessThanOrEqual(1)
        if (!wasInDoubt) expect(it.ran, where).toContain('book c2')
        if (point !== 'call_end') expect(it.ran.length, where).toBeLessThanOrEqual(base.ran.length)
      }
    expect(inDoubt).toBeGreaterThan(0) // the write, when its start is in the log and its end is not
  }, 20_000)
})

/** Runs one thread over a crash at a commit, in as many processes as it takes. */
async function crashed(
  kind: string,
  crash: { readonly at: number; readonly moment: 'before' | 'after' } | undefined,
  onCommit?: (point: string) => void,
) {
  const world = newWorld()
  const clock = manualClock(0) // of the store, for leases
  const store = memoryStore({ clock })
  const agents = [desk({ agent: agentOf(kind, world) })]
  const first = await boot(agents, store)
  const { id } = await first.runtime.threads.create({ agent: 'desk' })
  await first.runtime.stop()

  let commits = 0
  let isDead = false
  let die = (): void => {}
  const died = new Promise<void>((resolve) => (die = resolve))
  const dying = new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (name !== 'commit')
        return (...given: unknown[]) => {
          if (isDead) throw new Error('The process is dead.')
          return member.apply(target, given) as unknown
        }
      return async (commit: Commit) => {
        if (isDead) throw new Error('The process is dead.')
        const isIt = crash && commits === crash.at
        commits++
        onCommit?.(commit.point)
        const result = isIt && crash.moment === 'before' ? undefined : await store.commit(commit)
        if (!isIt) return result
        isDead = true
        die()
        throw new Error('The process died.')
      }
    },
  })
  const second = await boot(agents, dying)
  // A client whose request was cut off sends it again under the same id.
  const send = { text: 'Oslo?', messageId: 'm1' }
  await second.runtime.threads.send(id, send).catch(() => undefined)
  await Promise.race([second.runtime.idle(), died])
  await new Promise((resolve) => setTimeout(resolve, 1)) // what the dead process was about to do
  const hasCrashed = isDead
  isDead = true
  clock.advance(60_000) // the lease of the dead process ends
  const third = await boot(agents, store)
  await third.runtime.threads.send(id, send)
  await third.runtime.idle()
  const { outcome } = await third.runtime.threads.settled(id)
  const shown = await history(third.runtime, id)
  await third.runtime.stop()
  return { outcome, history: shown, requests: world.requests.length, ran: world.ran, hasCrashed }
}

describe('approvals', () => {
  test.each(['loop', 'react', 'custom'])(
    '%s: a call waits for a person over a restart, and runs once',
    async (kind) => {
      const world = newWorld()
      const store = memoryStore()
      const [script, execution] = kinds[kind]!
      const model = scripted((request, index) => {
        world.requests.push(request)
        return script(request, index)
      })
      const [look, book] = toolsOf(world)
      const risky = toolFrom(book!, {
        risk: 'write_high_risk',
        rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
      })
      const tools = [look!, risky as unknown as Tool]
      const agents = [desk({ agent: agent({ model, tools, execution }) })]
      const first = await boot(agents, store)
      const { id } = await first.runtime.threads.create({ agent: 'desk' })
      const { outcome } = await first.runtime.threads.run(id, 'Oslo?')
      expect(outcome).toBe('waiting')
      expect(world.ran).toEqual(['look c1'])
      const asked = world.requests.length
      await first.runtime.stop()

      const second = await boot(agents, store)
      await second.runtime.idle()
      const [item] = await second.runtime.inbox.list()
      expect(item).toMatchObject({ threadId: id, toolName: 'book', kind: 'approval' })
      expect(world.requests.length).toBe(asked)
      await second.runtime.inbox.approve({ ...item!, by: 'ann' })
      await second.runtime.idle()
      expect(await second.runtime.threads.settled(id)).toMatchObject({
        outcome: 'completed',
        text: 'Booked in Oslo.',
      })
      expect(world.ran).toEqual(['look c1', 'book c2', 'look c3'])
      await second.runtime.stop()
    },
  )

  test('property: an answer that comes while a sibling call runs is used as any other', async () => {
    let early = 0
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(['book', 'book', 'look', 'look'], { minLength: 2 }),
        fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
        fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
        async (names, turns, approvals) => {
          const ran: string[] = []
          const model = scripted(({ messages }) =>
            messages.at(-1)!.type === 'tool_result'
              ? says('Done.')
              : names.map((name, place) => calls(name, { city: 'Oslo' }, { id: `c${place}` })),
          )
          let isLooking = 0
          const look = tool({
            name: 'look',
            description: 'Looks.',
            parameters: city,
            risk: 'read_only',
            run: async () => {
              isLooking++
              for (let turn = 0; turn < 20; turn++) await new Promise((go) => setImmediate(go))
              isLooking--
              return 'looked'
            },
          })
          const run = (_: unknown, { toolCallId }: ToolContext) => void ran.push(toolCallId)
          const plain = tool({ name: 'book', description: 'Books.', parameters: city, run })
          const book = toolFrom(plain, { risk: 'write_high_risk', rollback: 'impossible' })
          const tools = [look, book as unknown as Tool]
          const agents = [desk({ agent: agent({ model, tools, execution: loop() }) })]
          const { runtime, errors } = await boot(agents, memoryStore())
          const { id } = await runtime.threads.create({ agent: 'desk' })
          await runtime.threads.send(id, 'Oslo?')
          const approved: string[] = []
          let wasEarly = 0
          for (let round = 0; round < 200; round++) {
            const { lifecycle } = await runtime.threads.get(id)
            if (lifecycle === 'idle' || lifecycle === 'failed') break
            for (let turn = 0; turn <= turns[round % 4]!; turn++)
              await new Promise((go) => setImmediate(go))
            // People see the question in the stream of the thread before the thread is parked.
            const { interrupts } = foldKernel(await runtime.threads.events(id))
            for (const { interrupt, answer } of interrupts.values()) {
              if (answer) continue
              if (isLooking > 0) wasEarly++
              const { id: interruptId, toolCallId } = interrupt
              const item = { threadId: id, interruptId, by: 'ann' }
              const isYes = approvals[Number(toolCallId.slice(1))]!
              if (isYes) approved.push(toolCallId)
              if (isYes) await runtime.inbox.approve(item)
              else await runtime.inbox.deny({ ...item, reason: 'no' })
            }
          }
          const { lastSession: settled } = foldKernel(await runtime.threads.events(id))
          expect({ ran, settled, errors }).toMatchObject({
            ran: approved,
            settled: { outcome: 'completed' },
            errors: [],
          })
          early += wasEarly
          await runtime.stop()
        },
      ),
      { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 60 },
    )
    expect(early).toBeGreaterThan(0)
  })
  test('denied: the model is told why, and nothing ran', async () => {
    const world = newWorld()
    const policy = () => ({ type: 'review' as const, reason: 'ask' })
    const agents = [desk({ agent: agentOf('loop', world) })]
    const { runtime } = await boot(agents, memoryStore(), { policy: policy as never })
    const { id } = await runtime.threads.create({ agent: 'desk' })
    await runtime.threads.run(id, 'Oslo?')
    const items = await runtime.inbox.list()
    for (const item of items) await runtime.inbox.deny({ ...item, by: 'ann', reason: 'too far' })
    await runtime.idle()
    expect(world.ran.some((one) => one.startsWith('book'))).toBe(false)
    await runtime.stop()
  })
})

test('a model that fails for a while is asked again after a wait that holds no process', async () => {
  const world = newWorld()
  let failures = 2
  const model = scripted((request, index) => {
    world.requests.push(request)
    const isThinking = request.tools.length === 0
    if (!isThinking && failures-- > 0) return fails({ code: 'RATE_LIMITED', message: 'Busy.' })
    return thinker(request, index)
  })
  const side = { agent: agent({ model, tools: toolsOf(world), execution: react() }) }
  const store = memoryStore()
  const { runtime, timers } = await boot([desk(side)], store)
  const { id } = await runtime.threads.create({ agent: 'desk', message: 'Oslo?' })
  await runtime.idle()
  expect((await runtime.threads.get(id)).wakeAt).toBe(new Date(START + 1_000).toISOString())
  expect(world.requests.length).toBe(2)
  await timers.advance(1_000)
  await runtime.idle()
  expect((await runtime.threads.get(id)).wakeAt).toBe(new Date(START + 3_000).toISOString())
  await timers.advance(2_000)
  await runtime.idle()
  expect(await runtime.threads.settled(id)).toMatchObject({ outcome: 'completed' })
  // Reasoning was asked once for each of the three cycles, however often the acting failed.
  expect(world.requests.filter(({ tools }) => tools.length === 0).length).toBe(3)
  await runtime.stop()
})

test('a strategy that asks something else when it is run again fails the session and says so', async () => {
  const world = newWorld()
  let runs = 0
  const moody: ExecutionStrategy = {
    ...drafts,
    name: 'moody',
    async execute({ llm, input, state }) {
      const mood = new UserMessage(`Mood ${runs++}.`)
      const turn = await llm.generate([...state.messages, input], mood)
      return { turn, state: state.withMessages([input, ...turn.messages]) }
    },
  }
  let failures = 1
  const model = scripted((request, index) => {
    world.requests.push(request)
    const isLate = request.messages.some(({ type }) => type === 'tool_result')
    if (isLate && failures-- > 0) return fails({ code: 'RATE_LIMITED', message: 'Busy.' })
    return actor(request, index)
  })
  const side = { agent: agent({ model, tools: toolsOf(world), execution: moody }) }
  const { runtime, timers } = await boot([desk(side)], memoryStore())
  const { id } = await runtime.threads.create({ agent: 'desk', message: 'Oslo?' })
  await runtime.idle()
  await timers.advance(1_000)
  await runtime.idle()
  const end = (await runtime.threads.events(id)).findLast(
    ({ event }) => event.type === 'session_end',
  )
  expect(end?.event).toMatchObject({ outcome: 'failed', reason: 'agent_diverged' })
  expect(end?.event).toMatchObject({ message: expect.stringContaining('"moody"') as string })
  expect(world.ran.filter((one) => one === 'book c2')).toEqual(['book c2'])
  await runtime.stop()
})

test('stop, limits and budgets hold as for a prompt', async () => {
  const world = newWorld()
  const forever = scripted((request, index) => {
    world.requests.push(request)
    return calls('look', { city: 'Oslo' }, { id: `c${index}` })
  })
  const endless = agent({ model: forever, tools: toolsOf(world) })
  const limited = desk({ agent: endless, maxSteps: 3 })
  const costly = defineAgent({
    name: 'costly',
    sideA: { agent: endless },
    budget: { maxTokens: 1 },
  })
  const { runtime } = await boot([limited, costly], memoryStore())
  const first = await runtime.threads.create({ agent: 'desk' })
  expect(await runtime.threads.run(first.id, 'go')).toMatchObject({
    outcome: 'failed',
    reason: 'max_side_steps',
  })
  expect(world.requests.length).toBe(3)
  const second = await runtime.threads.create({ agent: 'costly' })
  expect(await runtime.threads.run(second.id, 'go')).toMatchObject({
    outcome: 'failed',
    reason: 'budget_exceeded',
  })
  await runtime.stop()
})

describe.each([
  ['asks again after its calls', loop()],
  ['asks nothing more after its calls', loop({ maxIterations: 1 })],
])('a strategy that %s', (_, execution) => {
  test.each<[string, Partial<SideConfig>, object]>([
    [
      'sessionStop',
      { sessionStop: { name: 'done', messageProperty: 'text' } },
      { outcome: 'completed', reason: 'session_stop', text: 'three ships' },
    ],
    [
      'sessionFail',
      { sessionFail: { name: 'done', messageProperty: 'text' } },
      { outcome: 'failed', reason: 'session_fail', text: 'three ships' },
    ],
    [
      'stopTool',
      { stopTool: 'done', stopToolResponseProperty: 'text' },
      { outcome: 'completed', reason: 'stop_tool', text: 'three ships' },
    ],
  ])('SA-65 ends as %s of its side says', async (_, side, expected) => {
    const world = newWorld()
    const model = scripted((request) => {
      world.requests.push(request)
      return calls('done', { text: 'three ships' })
    })
    const risk = 'read_only'
    const run = () => 'ended'
    const done = tool({ name: 'done', description: 'Ends.', parameters: city, risk, run })
    const own = agent({ model, tools: [done], execution })
    const { runtime } = await boot([desk({ agent: own, ...side })], memoryStore())
    const { id } = await runtime.threads.create({ agent: 'desk' })
    expect(await runtime.threads.run(id, 'go')).toMatchObject(expected)
    expect(world.requests).toHaveLength(1)
    await runtime.stop()
  })
})

test('a message that comes while the agent works is answered in a session of its own', async () => {
  const world = newWorld()
  let runtime: EmbeddedRuntime | undefined
  let id = ''
  const model = scripted(async (request, index) => {
    if (index === 0) await runtime!.threads.send(id, { text: 'Hurry!', messageId: 'second' })
    world.requests.push(request)
    return actor(request, index)
  })
  ;({ runtime } = await boot(
    [desk({ agent: agent({ model, tools: toolsOf(world) }) })],
    memoryStore(),
  ))
  ;({ id } = await runtime.threads.create({ agent: 'desk', message: 'Oslo?' }))
  await runtime.idle()
  const shown = await history(runtime, id)
  expect(shown.filter((one) => typeof one === 'string')).toEqual(['user: Oslo?', 'user: Hurry!'])
  expect(shown.at(-1)).toMatchObject({ says: 'Booked in Oslo.' })
  expect(shown.indexOf('user: Hurry!')).toBe(shown.length - 2)
  await runtime.stop()
})

test('property: any rounds of calls give the same visible history in a program and as a side', async () => {
  const rounds = fc.array(
    fc.array(fc.record({ tool: fc.constantFrom('look', 'book', 'gone'), city: fc.string() }), {
      minLength: 1,
      maxLength: 3,
    }),
    { maxLength: 4 },
  )
  await fc.assert(
    fc.asyncProperty(rounds, fc.constantFrom(loop(), react()), async (script, execution) => {
      const make = () => {
        const model = scripted(({ messages, tools }) => {
          if (tools.length === 0) return says('Thinking.')
          const round = messages.filter(({ type }) => type === 'tool_result').length
          const next = script[round]
          if (!next) return says('Done.')
          return next.map(({ tool: name, city: where }, index) =>
            calls(name, { city: where }, { id: `${round}-${index}` }),
          )
        })
        return agent({ model, tools: toolsOf(newWorld()), execution })
      }
      const { state } = await make().generate('Go.', AgentState.initial())
      const { runtime } = await boot([desk({ agent: make() })], memoryStore())
      const { id } = await runtime.threads.create({ agent: 'desk' })
      await runtime.threads.run(id, 'Go.')
      expect(await history(runtime, id)).toEqual(visible(state.messages))
      await runtime.stop()
    }),
    { numRuns: 60 },
  )
}, 60_000)

describe('definitions', () => {
  const model = scripted([says('Hi.')])
  const prompt = definePrompt({ name: 'p', model, prompt: '' })
  const inner = subagent({
    name: 'explore',
    description: 'Explores.',
    parameters: city,
    agent: agent({ model }),
    prompt: () => 'go',
  })
  test.each<[string, object, string]>([
    ['both', { prompt, agent: agent({ model }) }, 'sideA.agent: must be left out'],
    ['neither', {}, 'sideA.prompt: is required, or an agent in its place'],
    ['no agent', { agent: { model } }, 'sideA.agent: must be an agent() of @skein/agents'],
    ['no model', { agent: agent({}) }, 'sideA.agent.model: is required'],
    ['a sub-agent', { agent: agent({ model, tools: [inner] }) }, '"explore" is a sub-agent'],
    ['an unknown stop tool', { agent: agent({ model }), stopTool: 'x' }, '"x" is not among'],
  ])('%s is refused', async (_, sideA, message) => {
    const definition = desk(sideA as SideConfig)
    await expect(createRuntime({ agents: [definition] })).rejects.toThrow(message)
  })
})
