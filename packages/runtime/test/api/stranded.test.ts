import { tool } from '@skein/ai'
import type { JsonObject } from '@skein/base'
import type { Policy } from '@skein/governance'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRegistry,
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  findStranded,
  type EmbeddedRuntime,
  type Registry,
  type RuntimeEvent,
  type Store,
} from '@skein/runtime'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { agentOf, logOf, Machine } from './machine.ts'

type Risk = 'read_only' | 'write_low_risk' | 'write_high_risk'

/** What a deploy changes; the defaults are what runs before it. */
interface Edit {
  readonly gone: readonly ('payer' | 'pair' | 'reminder' | 'maker' | 'helper')[]
  readonly pay: { readonly isGone: boolean; readonly needsNote: boolean; readonly risk: Risk }
  readonly isPairAlone: boolean
  readonly remind: 'there' | 'gone'
  readonly charge: 'gone' | Risk
  readonly isWorkerGone: boolean
}

const BEFORE: Edit = {
  gone: [],
  pay: { isGone: false, needsNote: false, risk: 'write_low_risk' },
  isPairAlone: false,
  remind: 'there',
  charge: 'write_high_risk',
  isWorkerGone: false,
}

const edits: fc.Arbitrary<Edit> = fc.record({
  gone: fc.subarray(['payer', 'pair', 'reminder', 'maker', 'helper'] as const, { maxLength: 2 }),
  pay: fc.record({
    isGone: fc.boolean(),
    needsNote: fc.boolean(),
    risk: fc.constantFrom<Risk>('read_only', 'write_low_risk', 'write_high_risk'),
  }),
  isPairAlone: fc.boolean(),
  remind: fc.constantFrom('there', 'gone'),
  charge: fc.constantFrom<Edit['charge']>('gone', 'read_only', 'write_low_risk', 'write_high_risk'),
  isWorkerGone: fc.boolean(),
})

/** After its calls a model speaks; before, it makes them. */
const once = (name: string, args: JsonObject) =>
  scripted(({ messages }) =>
    messages.some(({ type }) => type === 'tool_result') ? says('Done.') : calls(name, args),
  )

/** Two tools that pay: one checks its arguments as `defineTool` does, one as `tool()` does. */
function payTools({ isGone, needsNote, risk }: Edit['pay']) {
  const args = z.object({ sum: z.number(), note: needsNote ? z.string() : z.string().optional() })
  const own = defineTool({
    name: 'pay',
    description: '',
    args,
    risk,
    rollback: 'impossible',
    execute: () => 'paid',
  })
  const plain = tool({
    name: 'send',
    description: '',
    parameters: args,
    risk: risk === 'write_high_risk' ? 'write_low_risk' : risk,
    run: () => 'sent',
  })
  return isGone ? [] : [own, plain]
}

function registryOf(edit: Edit): Registry {
  const tools = payTools(edit.pay)
  const quiet = defineTool({ name: 'end', description: '', risk: 'read_only', execute: () => 'x' })
  const prompt = (name: string, model: ReturnType<typeof scripted>, more: object = {}) =>
    definePrompt({ name, prompt: '', model, tools: [...tools, quiet], ...more })
  const speaks = scripted(() => says('Hello.'))
  const payer = defineAgent({
    name: 'payer',
    sideA: { prompt: prompt('p', once('pay', { sum: 1 })) },
  })
  const sender = defineAgent({
    name: 'sender',
    sideA: { prompt: prompt('s', once('send', { sum: 2 })) },
  })
  const pairA = { prompt: prompt('pair_a', speaks) }
  const pairB = {
    prompt: prompt('pair_b', once('pay', { sum: 3 })),
    sessionStop: 'end',
  }
  const pair = edit.isPairAlone
    ? defineAgent({ name: 'pair', sideA: pairA })
    : defineAgent({ name: 'pair', type: 'dual_ai', maxSessionTurns: 4, sideA: pairA, sideB: pairB })
  const reminder = defineAgent({ name: 'reminder', sideA: { prompt: prompt('r', speaks) } })
  const helper = defineAgent({
    name: 'helper',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'helps',
    sideA: { prompt: prompt('helper_a', once('pay', { sum: 4 })) },
    sideB: {
      prompt: prompt(
        'helper_b',
        scripted(() => calls('end', {})),
      ),
      sessionStop: 'end',
    },
  })
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'works',
    sideA: {
      prompt: prompt('worker_a', speaks, {
        variables: [{ name: 'KEY', required: true, scoped: true }],
      }),
    },
    sideB: {
      prompt: prompt(
        'worker_b',
        scripted(() => calls('end', {})),
      ),
      sessionStop: 'end',
    },
  })
  const hasHelper = !edit.gone.includes('helper')
  const asker = defineAgent({
    name: 'asker',
    sideA: {
      prompt: prompt('asker', once('helper', { message: 'help' }), {
        tools: hasHelper ? [{ name: helper }] : [],
      }),
    },
  })
  const maker = defineAgent({
    name: 'maker',
    sideA: {
      prompt: prompt('maker', once('worker', { message: 'work' }), {
        tools: edit.isWorkerGone ? [] : [{ name: worker }],
      }),
    },
  })
  const named = { payer, pair, reminder, maker, helper }
  const left = Object.entries(named)
    .filter(([name]) => !edit.gone.includes(name as Edit['gone'][number]))
    .map(([, agent]) => agent)
  const remind = defineEffect({ name: 'remind', execute: () => {} })
  const charge = defineEffect({
    name: 'charge',
    risk: edit.charge === 'gone' ? 'read_only' : edit.charge,
    execute: () => {},
  })
  return createRegistry({
    agents: [...left, sender, asker],
    effects: [
      ...(edit.remind === 'gone' ? [] : [remind]),
      ...(edit.charge === 'gone' ? [] : [charge]),
    ],
  })
}

/** Every write has to be approved, so that a risk can change while an approval is pending. */
const policy: Policy = {
  id: 'all',
  hash: `sha256:${'0'.repeat(64)}`,
  decide: () => ({ effect: 'review' }),
}

/** Starts a thread of each kind and stops the process when all of them wait. */
async function installation(machine: Machine): Promise<void> {
  const runtime = await machine.boot({ registry: registryOf(BEFORE), policy })
  for (const agent of ['payer', 'sender', 'asker', 'maker'])
    await runtime.threads.create({ agent, message: 'go' })
  await runtime.threads.create({ agent: 'pair', message: 'go' })
  const { id } = await runtime.threads.create({ agent: 'reminder', message: 'go' })
  await runtime.threads.create({ agent: 'reminder', message: 'nothing to do after this' })
  await machine.timers.advance(100)
  await runtime.threads.effects.schedule(id, 'remind', {}, 60_000)
  await runtime.threads.effects.schedule(id, 'charge', {}, 0)
  await machine.timers.advance(100)
  await runtime.stop()
}

/** Answers everything that waits for a person, and lets the scheduled time come. */
async function live(machine: Machine, runtime: EmbeddedRuntime): Promise<void> {
  await machine.timers.advance(100)
  for (const { id } of await machine.store.list({ agent: 'maker' })) {
    const [request] = (await logOf(machine.store, id)).flatMap((event) =>
      event.type === 'variables_requested' ? [event] : [],
    )
    // Resolves when the child was created, which does not happen while the agent is gone.
    void runtime.threads.variables
      .provide(id, request!.requestId, { KEY: 'k' }, { by: 'ann' })
      .catch(() => {})
    await machine.timers.advance(100)
  }
  for (const item of await runtime.inbox.list()) await runtime.inbox.approve({ ...item, by: 'ann' })
  await machine.timers.advance(61_000)
  await machine.timers.advance(100)
}

type Finding = readonly [threadId: string, problem: string, subject: string]

/** Reads from the log what became of a thread after the deploy. */
function observed(threadId: string, log: readonly RuntimeEvent[], from: number): Finding[] {
  const found: Finding[] = []
  const asked = new Map<string, string>()
  const turns = new Map<string, string>()
  for (const [index, event] of log.entries()) {
    const isAfter = index >= from
    if (event.type === 'turn_start') turns.set(event.turnId, event.side)
    if (event.type === 'effect_scheduled') asked.set(event.effectId, event.name)
    if (event.type === 'message_added' && event.message.type === 'assistant')
      for (const call of (
        event.message as { toolCalls?: { toolCallId: string; toolName: string }[] }
      ).toolCalls ?? [])
        asked.set(call.toolCallId, call.toolName)
    if (!isAfter) continue
    const add = (problem: string, subject: string) => found.push([threadId, problem, subject])
    if (event.type === 'error_raised' && event.code === 'AGENT_NOT_FOUND')
      add('agent_gone', /agent "(\w+)"/.exec(event.message)![1]!)
    if (event.type === 'model_requested' && turns.get(event.turnId) !== event.side)
      add('side_gone', 'b')
    if (event.type === 'tool_execution_end' && event.outcome !== 'success') {
      const text = JSON.stringify(event.result)
      if (text.includes('There is no tool')) add('tool_gone', event.toolName)
      if (/note/.test(text)) add('arguments_refused', event.toolName)
    }
    if (event.type === 'interrupt_opened' && event.interrupt.kind === 'approval')
      add('approval_void', asked.get(event.interrupt.toolCallId) ?? '?')
    if (event.type === 'effect_ended' && event.error?.includes('There is no effect'))
      add('effect_gone', asked.get(event.effectId) ?? '?')
    if (event.type === 'variables_settled' && event.error !== undefined) add('child_gone', 'worker')
  }
  return found
}

async function heads(store: Store) {
  return store.list({ limit: 1000, sort: 'oldest' })
}

test('law: what the report says is what a restart with the new definitions then does', async () => {
  await fc.assert(
    fc.asyncProperty(edits, async (edit) => {
      const machine = new Machine()
      await installation(machine)
      const before = await heads(machine.store)
      const registry = registryOf(edit)
      const report = await findStranded(registry, machine.store)
      expect((await heads(machine.store)).map(({ seq }) => seq)).toEqual(before.map((x) => x.seq))

      const runtime = await machine.boot({ registry, policy })
      await live(machine, runtime)
      // A call that is asked about again is answered again, so that its arguments are tried.
      for (const item of await runtime.inbox.list())
        await runtime.inbox.approve({ ...item, by: 'ann' })
      await machine.timers.advance(1_000)
      const seen: Finding[] = []
      for (const { id, seq } of before)
        seen.push(...observed(id, await logOf(machine.store, id), seq))
      const said = report.findings.flatMap(({ threadId, problem, subject }): Finding[] =>
        // The parent of a child whose agent is gone waits on, which no event says.
        problem === 'child_gone' && subject === 'helper' ? [] : [[threadId, problem, subject]],
      )
      const sorted = (list: Finding[]) => [...new Set(list.map((one) => one.join(' ')))].sort()
      expect(sorted(said)).toEqual(sorted(seen))
      const asker = before.find(({ agent }) => agent === 'asker')!
      const isWaiting = report.findings.some(
        ({ subject, threadId }) => threadId === asker.id && subject === 'helper',
      )
      expect(isWaiting).toBe(edit.gone.includes('helper'))
      if (isWaiting)
        expect(await machine.store.head(asker.id)).toMatchObject({ lifecycle: 'waiting' })
      expect(report.idle['reminder'] ?? 0).toBe(edit.gone.includes('reminder') ? 1 : 0)
      expect(machine.errors).toEqual([])
    }),
    { numRuns: 60 },
  )
})

/** A thread whose tool ran when its process died, and a process without the tool. */
test('a call that a crash cut off, and whose tool is gone, has an unknown outcome', async () => {
  const machine = new Machine()
  const model = () => once('wire', {})
  const wire = defineTool({
    name: 'wire',
    description: '',
    risk: 'write_low_risk',
    execute: () => machine.kill(),
  })
  await machine.boot({ agents: [agentOf('a', model(), [wire])] }).then(async (runtime) => {
    await runtime.threads.create({ agent: 'a', message: 'go' })
  })
  expect(await machine.run(1_000)).toBe('died')
  const registry = createRegistry({ agents: [agentOf('a', model())] })
  const { id } = (await heads(machine.store))[0]!
  expect((await findStranded(registry, machine.store)).findings).toMatchObject([
    { threadId: id, problem: 'tool_gone', subject: 'wire' },
  ])
  const second = await machine.boot({ registry })
  await machine.run(60_000)
  expect(machine.errors).toEqual([])
  const end = (await logOf(machine.store, id)).find(({ type }) => type === 'tool_execution_end')
  expect(end).toMatchObject({
    outcome: 'unknown',
    result: expect.stringContaining('unknown') as string,
  })
  expect(await second.threads.get(id)).toMatchObject({
    lifecycle: expect.not.stringMatching('running') as string,
  })
  expect(machine.errors).toEqual([])
})

test('the report has limits, and says what it left out', async () => {
  const machine = new Machine()
  await installation(machine)
  const registry = registryOf({ ...BEFORE, pay: { ...BEFORE.pay, isGone: true } })
  const whole = await findStranded(registry, machine.store)
  expect(whole).toMatchObject({ count: 4, unread: 0, changed: 5 })
  const short = await findStranded(registry, machine.store, { maxFindings: 1 })
  expect(short).toEqual({ ...whole, findings: whole.findings.slice(0, 1) })
  // Threads that wait are read first.
  const few = await findStranded(registry, machine.store, { maxThreads: 5 })
  expect(few).toMatchObject({ count: 4, threads: 5, unread: whole.threads - 5 })
})

test('with a pin, a session of other definitions waits for them', async () => {
  const machine = new Machine()
  await installation(machine)
  const registry = registryOf({ ...BEFORE, pay: { ...BEFORE.pay, isGone: true } })
  const { findings, changed } = await findStranded(registry, machine.store, { pin: 'session' })
  expect(new Set(findings.map(({ problem }) => problem))).toEqual(new Set(['agent_changed']))
  expect(findings).toHaveLength(5)
  expect(changed).toBe(0)
  const same = await findStranded(registryOf(BEFORE), machine.store, { pin: 'session' })
  expect(same).toMatchObject({ count: 0, changed: 0, idle: {} })
})

test('a log that cannot be read is a finding, and the others are read', async () => {
  const machine = new Machine()
  await installation(machine)
  const [first] = await heads(machine.store)
  const store = {
    list: machine.store.list.bind(machine.store),
    events: async (id: string, options?: object) => {
      if (id === first!.id) throw new Error('A page is damaged.')
      return machine.store.events(id, options)
    },
  }
  const { findings } = await findStranded(registryOf(BEFORE), store)
  expect(findings).toMatchObject([
    { threadId: first!.id, problem: 'log_unreadable', message: 'A page is damaged.' },
  ])
})
