import { afterEach, expect, test } from 'vitest'
import { agent } from '@skein/agents'
import { calls, says, scripted, type ScriptStep, waits } from '@skein/ai/testing'
import { createRuntime, type EmbeddedRuntime, type RuntimeEvent } from '../../src/index.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import type { AgentDefinition } from '../../src/definitions/agent-definition.ts'
import type { PromptTool } from '../../src/definitions/prompt-definition.ts'
import { foldKernel } from '../../src/state/fold.ts'
import { deferred } from './harness.ts'

let runtime: EmbeddedRuntime | undefined

afterEach(async () => {
  await runtime?.stop({ graceMs: 0 })
  runtime = undefined
})

async function start(...agents: AgentDefinition[]): Promise<EmbeddedRuntime> {
  runtime = await createRuntime({ agents })
  await runtime.start()
  return runtime
}

/** An agent whose model plays the script, and what the model was asked. */
function scriptedAgent(script: readonly ScriptStep[], tools: readonly PromptTool[] = []) {
  const model = scripted(script)
  const prompt = definePrompt({ name: 'solo', prompt: '', model, tools })
  return { solo: defineAgent({ name: 'solo', sideA: { prompt } }), model }
}

type Model = ReturnType<typeof scriptedAgent>['model']

/** What a model was shown in a request, one line per message. */
function shown({ requests }: Model, index: number): string[] {
  return requests[index]!.messages.map((message) => {
    if (message.type !== 'tool_result') {
      const named = (message.type === 'assistant' ? message.toolCalls : undefined) ?? []
      return [message.type, message.text, ...named.map(({ toolName }) => toolName)].join(' ').trim()
    }
    return message.results.map(({ result }) => `= ${String(result)}`).join(' ')
  })
}

async function eventsOf({ threads }: EmbeddedRuntime, id: string): Promise<RuntimeEvent[]> {
  return (await threads.events(id)).map(({ event }) => event)
}

/** Resolves when the thread shows or stores an event of this type. */
async function until({ subscribe }: EmbeddedRuntime, id: string, type: string): Promise<void> {
  for await (const { event } of subscribe(id)) if (event.type === type) return
}

const THINKS = [says('Half'), waits(60_000), says(' an answer.')]
const NOT_RUN = 'A new message came before this call ran, so it was not run.'

const pay = (paid: number[]) =>
  defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'pay', payload: {} }),
    execute: () => void paid.push(1),
  })

test('reject: a busy thread refuses the message and its log stays as it is', async () => {
  const { solo } = scriptedAgent([THINKS])
  const embedded = await start(solo)
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo' })
  await threads.send(id, { text: 'one', messageId: 'm1', ifBusy: 'reject' })
  await until(embedded, id, 'text_delta')
  const before = (await threads.get(id)).seq
  await expect(threads.send(id, { text: 'two', ifBusy: 'reject' })).rejects.toMatchObject({
    code: 'THREAD_BUSY',
  })
  expect((await threads.get(id)).seq).toBe(before)
  // A repeated send is not a new message.
  expect(await threads.send(id, { text: 'one', messageId: 'm1', ifBusy: 'reject' })).toMatchObject({
    queueId: 'm1',
  })
})

test('reject: a thread that waits for a person, or whose message is still queued, is busy', async () => {
  const { solo } = scriptedAgent([calls('pay', {}), says('ok')], [pay([])])
  const embedded = await start(solo)
  const { threads, inbox } = embedded
  const { id } = await threads.create({ agent: 'solo' })
  expect(await threads.run(id, 'pay')).toMatchObject({ outcome: 'waiting' })
  const again = { text: 'again', ifBusy: 'reject' } as const
  await expect(threads.send(id, again)).rejects.toMatchObject({ code: 'THREAD_BUSY' })
  const [item] = await inbox.list()
  await inbox.deny({ ...item!, by: 'ann', reason: 'no' })
  await embedded.idle()
  const both = await Promise.allSettled([threads.send(id, again), threads.send(id, again)])
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
})

test('an unknown word for ifBusy is refused', async () => {
  const { solo } = scriptedAgent([says('ok')])
  const { threads } = await start(solo)
  const { id } = await threads.create({ agent: 'solo' })
  const wrong = { text: 'x', ifBusy: 'never' as 'cut' }
  await expect(threads.send(id, wrong)).rejects.toMatchObject({ code: 'INPUT_INVALID' })
})

test('cut: what the model had said stays, and the next turn of the session answers the message', async () => {
  const { solo, model } = scriptedAgent([THINKS, says('Yes.')])
  const embedded = await start(solo)
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await until(embedded, id, 'text_delta')
  const result = await threads.run(id, { text: 'two', ifBusy: 'cut' })
  expect(result).toMatchObject({ outcome: 'completed', text: 'Yes.' })
  expect(shown(model, 1)).toEqual(['user one', 'assistant Half', 'user two'])
  const events = await eventsOf(embedded, id)
  expect(events.filter(({ type }) => type === 'session_start')).toHaveLength(1)
  const ends = events.flatMap((event) => (event.type === 'turn_end' ? [event.outcome] : []))
  expect(ends).toEqual(['interrupted', 'completed'])
})

test('cut: a call that has started ends, one that has not does not run, and both are told', async () => {
  const [entered, released] = [deferred(), deferred()]
  let writes = 0
  const slow = defineTool({
    name: 'slow',
    description: 'Slow.',
    risk: 'write_low_risk',
    async execute() {
      entered.resolve()
      await released.promise
      return 'slowly done'
    },
  })
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    risk: 'write_low_risk',
    execute: () => void writes++,
  })
  const script = [[calls('slow', {}), calls('write', {})], says('Yes.')]
  const { solo, model } = scriptedAgent(script, [slow, write])
  const { threads } = await start(solo)
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await entered.promise
  const result = threads.run(id, { text: 'two', ifBusy: 'cut' })
  await threads.messages(id)
  released.resolve()
  expect(await result).toMatchObject({ outcome: 'completed', text: 'Yes.' })
  expect(writes).toBe(0)
  expect(shown(model, 1)).toEqual([
    'user one',
    'assistant  slow write',
    `= slowly done = ${NOT_RUN}`,
    'user two',
  ])
})

test.each([
  ['a read is dropped', 'read_only', '= A new message came. This call has no result.'],
  ['a write that ends in its grace is kept', 'write_low_risk', '= written'],
] as const)('cut: %s', async (_, risk, told) => {
  const [entered, released] = [deferred(), deferred()]
  const slow = defineTool({
    name: 'slow',
    description: 'Slow.',
    risk,
    async execute(_state, _args, { signal }) {
      entered.resolve()
      const isAborted = new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      )
      await Promise.race([isAborted, released.promise])
      return 'written'
    },
  })
  const { solo, model } = scriptedAgent([calls('slow', {}), says('Yes.')], [slow])
  const { threads } = await start(solo)
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await entered.promise
  const result = threads.run(id, { text: 'two', ifBusy: 'cut' })
  await threads.messages(id)
  if (risk !== 'read_only') released.resolve()
  expect(await result).toMatchObject({ text: 'Yes.' })
  expect(shown(model, 1).at(-2)).toBe(told)
})

test.each(['cut', 'restart'] as const)(
  '%s: what was asked of a person is withdrawn, and its approval cannot be used',
  async (ifBusy) => {
    const paid: number[] = []
    const { solo, model } = scriptedAgent([calls('pay', {}), says('Yes.')], [pay(paid)])
    const embedded = await start(solo)
    const { threads, inbox } = embedded
    const { id } = await threads.create({ agent: 'solo' })
    const waiting = await threads.run(id, 'pay')
    expect(waiting.outcome).toBe('waiting')
    const [item] = waiting.waiting
    expect(await threads.run(id, { text: 'two', ifBusy })).toMatchObject({ text: 'Yes.' })
    expect(await inbox.list()).toEqual([])
    expect((await threads.get(id)).waiting).toBe(0)
    await expect(inbox.approve({ ...item!, by: 'ann' })).rejects.toMatchObject({
      code: 'INTERRUPT_NOT_FOUND',
    })
    expect(paid).toEqual([])
    const kept = ['user pay', 'assistant  pay', `= ${NOT_RUN}`]
    expect(shown(model, 1)).toEqual([...(ifBusy === 'cut' ? kept : []), 'user two'])
    // The audit log shows the request and its end.
    const { lines } = await threads.audit(id)
    const ends = lines.filter((line) => line.includes('"review_answered"'))
    expect(ends).toEqual([
      expect.stringMatching(/"id":"runtime","type":"system"|"type":"system","id":"runtime"/),
    ])
    expect(lines.filter((line) => line.includes('"call_started"'))).toEqual([])
  },
)

test('restart: the model sees only the new message, the log and people see everything', async () => {
  const { solo, model } = scriptedAgent([says('Hello.'), THINKS, says('Yes.')])
  const embedded = await start(solo)
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo' })
  await threads.run(id, 'hi')
  const first = threads.run(id, 'one')
  await until(embedded, id, 'text_delta')
  expect(await threads.run(id, { text: 'two', ifBusy: 'restart' })).toMatchObject({ text: 'Yes.' })
  expect(await first).toMatchObject({ outcome: 'stopped', reason: 'restarted' })
  expect(shown(model, 2)).toEqual(['user hi', 'assistant Hello.', 'user two'])
  const told = (await threads.messages(id)).map(({ message }) =>
    message.type === 'tool_result' ? '' : message.text,
  )
  expect(told).toEqual(['hi', 'Hello.', 'one', 'Half', 'two', 'Yes.'])
})

test('restart: calls that had started stay visible with their outcomes', async () => {
  const [entered, released] = [deferred(), deferred()]
  const slow = defineTool({
    name: 'slow',
    description: 'Slow.',
    risk: 'write_low_risk',
    async execute() {
      entered.resolve()
      await released.promise
      return 'slowly done'
    },
  })
  const { solo, model } = scriptedAgent([calls('slow', {}), says('Yes.')], [slow])
  const { threads } = await start(solo)
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await entered.promise
  const result = threads.run(id, { text: 'two', ifBusy: 'restart' })
  await threads.messages(id)
  released.resolve()
  expect(await result).toMatchObject({ text: 'Yes.' })
  expect(shown(model, 1)).toEqual([
    'user [What was asked here was taken back. Calls that had started by then are shown with their outcomes.]',
    'assistant  slow',
    '= slowly done',
    'user two',
  ])
})

test('restart: messages that wait in the queue are withdrawn, too', async () => {
  const { solo, model } = scriptedAgent([THINKS, says('Yes.')])
  const embedded = await start(solo)
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await until(embedded, id, 'text_delta')
  const second = threads.run(id, 'two')
  await threads.messages(id)
  expect(await threads.run(id, { text: 'three', ifBusy: 'restart' })).toMatchObject({
    text: 'Yes.',
  })
  expect(await second).toMatchObject({ outcome: 'stopped', reason: 'unsent' })
  expect(shown(model, 1)).toEqual(['user three'])
})

test('cut and restart at rest are ordinary messages', async () => {
  const { solo, model } = scriptedAgent([says('a'), says('b'), says('c')])
  const { threads } = await start(solo)
  const { id } = await threads.create({ agent: 'solo' })
  await threads.run(id, 'one')
  await threads.run(id, { text: 'two', ifBusy: 'cut' })
  await threads.run(id, { text: 'three', ifBusy: 'restart' })
  expect(shown(model, 2)).toEqual([
    'user one',
    'assistant a',
    'user two',
    'assistant b',
    'user three',
  ])
})

test('a cut that is taken back before it is done leaves the turn alone', async () => {
  const [entered, released] = [deferred(), deferred()]
  const slow = defineTool({
    name: 'slow',
    description: 'Slow.',
    risk: 'read_only',
    async execute() {
      entered.resolve()
      await released.promise
      return 'done'
    },
  })
  const { solo, model } = scriptedAgent([calls('slow', {}), says('Yes.')], [slow])
  const { threads, idle } = await start(solo)
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await entered.promise
  const { queueId } = await threads.send(id, { text: 'two', ifBusy: 'restart' })
  expect(await threads.unsend(id, queueId)).toBe(true)
  released.resolve()
  await idle()
  expect(shown(model, 1)).toEqual(['user one', 'assistant  slow', '= done'])
})

test('cut: the strategy of an agent() starts again with the new message', async () => {
  const model = scripted([THINKS, says('Yes.')])
  const side = agent({ model })
  const embedded = await start(defineAgent({ name: 'solo', sideA: { agent: side } }))
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  await until(embedded, id, 'text_delta')
  expect(await threads.run(id, { text: 'two', ifBusy: 'cut' })).toMatchObject({ text: 'Yes.' })
  expect(shown(model, 1)).toEqual(['user one', 'assistant Half', 'user two'])
})

test('cut: a child goes on in the same session, and its parent gets one answer', async () => {
  const done = defineTool({
    name: 'done',
    description: 'Ends.',
    risk: 'read_only',
    execute: () => 'finished',
  })
  const side = (name: string, script: readonly ScriptStep[], tools: readonly PromptTool[] = []) =>
    definePrompt({ name, prompt: '', model: scripted(script), tools })
  const child = defineAgent({
    name: 'child',
    type: 'dual_ai',
    maxSessionTurns: 4,
    exposeAsTool: true,
    toolDescription: 'Works.',
    sideA: { prompt: side('works', [THINKS, calls('done', {})], [done]), sessionStop: 'done' },
    sideB: { prompt: side('reviews', []) },
  })
  const { solo, model } = scriptedAgent([calls('child', {}), says('Yes.')], [{ name: child }])
  const embedded = await start(solo)
  const { threads } = embedded
  const { id } = await threads.create({ agent: 'solo', message: 'one' })
  const below = async (): Promise<string> => {
    for (;;) {
      const [found] = await threads.children(id)
      if (found) return found.reference
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  const childId = await below()
  await until(embedded, childId, 'text_delta')
  await threads.send(childId, { text: 'be quick', ifBusy: 'cut' })
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Yes.' })
  expect(shown(model, 1).at(-1)).toBe('= finished')
  const events = await eventsOf(embedded, childId)
  expect(events.filter(({ type }) => type === 'session_end')).toHaveLength(1)
})

test('restart: a summary of what was dropped is dropped, too', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const said = (id: string) => ({
    type: 'message_added',
    turnId: id,
    side: 'b',
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text: id }] },
  })
  const compacted = (upTo: string) => ({
    type: 'context_compacted',
    side: 'a',
    upTo,
    summary: `up to ${upTo}`,
  })
  const session = (sessionId: string) => ({ type: 'session_start', sessionId, agent: 'a' })
  const events = [
    { type: 'thread_created', threadId: 't', agent: 'a', version: 2, depth: 0 },
    session('s1'),
    said('m1'),
    said('m2'),
    compacted('m1'),
    { type: 'session_end', sessionId: 's1', outcome: 'completed', reason: 'response' },
    session('s2'),
    said('m3'),
    compacted('m2'),
    said('m4'),
    compacted('m3'),
  ]
  const fold = (log: readonly object[]) =>
    foldKernel(log.map((event, place) => ({ seq: place + 1, event: { at, ...event } as never })))
  expect(fold(events).compacted.a).toMatchObject({ upTo: 'm3' })
  const cut = { type: 'turn_cut', turnId: 'x', dropped: ['m3', 'm4'] }
  expect(fold([...events, cut]).compacted.a).toMatchObject({ upTo: 'm2' })
  expect(fold([...events, { ...cut, dropped: [] }]).compacted.a).toMatchObject({ upTo: 'm3' })
})
