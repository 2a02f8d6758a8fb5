import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { messageFromJSON, type LLMRequest } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryStore,
  type AgentDefinition,
  type EmbeddedRuntime,
  type NumberedEvent,
  type ToolDefinition,
} from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { threadView, type ThreadView } from '@skein/runtime/view'
import { viewHtml } from '../../src/operations/view-html.ts'
import { ShownEvents } from '../../src/protocols/chat/shown-events.ts'
import { foldKernel } from '../../../runtime/src/state/fold.ts'
import { restoreSnapshot, takeSnapshot } from '../../../runtime/src/state/snapshot.ts'
import { KEYS, startKit, type Kit } from '../http/http-kit.ts'
import { Machine } from '../../../runtime/test/api/machine.ts'

const kits: Kit[] = []
const runtimes: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
  for (const runtime of runtimes.splice(0)) await runtime.stop({ graceMs: 0 })
})

const read = defineTool({
  name: 'read',
  description: 'Reads the facts.',
  args: z.object({}),
  risk: 'read_only',
  execute: () => 'facts',
})

/** Claims at once; when it is sent back, reads and claims again. What it was asked is kept in `asked`. */
function clerk(
  asked: LLMRequest[] = [],
  {
    repairs = 0,
    gated = true,
    tools = [read],
  }: {
    readonly repairs?: number
    readonly gated?: boolean
    readonly tools?: readonly ToolDefinition[]
  } = {},
): AgentDefinition {
  const model = scripted((request) => {
    asked.push(request)
    const last = request.messages.at(-1)
    if (last?.type === 'tool_result') return says('A proven claim.')
    const text = last?.type === 'user' ? last.text : ''
    if (/Prove|Correct this/.test(text)) return [says('Let me look.'), calls('read', {})]
    return says('An unproven claim.')
  })
  const prompt = definePrompt({ name: 'clerk', prompt: 'Report.', model, tools })
  const agent = defineAgent({ name: 'clerk', sideA: { prompt } })
  if (!gated) return agent
  const needs = [{ type: 'tool_result', source: 'read' }] as const
  return { ...agent, taskClass: { name: 'report', needs, verifiers: [], repair: { max: repairs } } }
}

async function start(agent: AgentDefinition): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({ agents: [agent], store: memoryStore() })
  runtimes.push(runtime)
  await runtime.start()
  return runtime
}

const textsOf = async (runtime: EmbeddedRuntime, id: string): Promise<unknown[]> =>
  (await runtime.threads.messages(id))
    .filter(({ message }) => message.type === 'assistant')
    .map(({ message, delivery }) => [message.type === 'assistant' && message.text, delivery])

const shownIn = ({ items }: ThreadView): unknown[] =>
  items.flatMap((item) =>
    item.type === 'message' && item.from === 'agent' ? [[item.text, item.delivery]] : [],
  )

const viewOf = async (runtime: EmbeddedRuntime, id: string): Promise<ThreadView> =>
  threadView(await runtime.threads.events(id))

test('UAICP-14 what an agent with a task class says is unverified in every event until the gate has judged it', async () => {
  const runtime = await start(clerk())
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  await runtime.threads.send(id, 'One')
  const events: NumberedEvent['event'][] = []
  for await (const { event } of runtime.subscribe(id, { untilParked: true })) events.push(event)
  const verdict = events.findIndex(({ type }) => type === 'delivery_changed')
  const said = events.filter(
    (event) =>
      event.type === 'text_delta' ||
      (event.type === 'message_added' && event.message.type === 'assistant'),
  )
  expect(said.length).toBeGreaterThan(1)
  for (const event of said) {
    expect(event).toMatchObject({ delivery: 'pending' })
    expect(events.indexOf(event)).toBeLessThan(verdict)
  }
  expect(events[verdict]).toMatchObject({
    delivery: 'refused',
    reason: expect.stringContaining('EVIDENCE_MISSING'),
  })
})

test('UAICP-14 a refused answer is marked in messages, view, exports, forks and imports, live and from the log', async () => {
  const runtime = await start(clerk())
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  await runtime.threads.run(id, 'One')
  const marked = [['An unproven claim.', 'refused']]
  expect(await textsOf(runtime, id)).toEqual(marked)
  const view = await viewOf(runtime, id)
  expect(shownIn(view)).toEqual(marked)
  expect(viewHtml(view, 'A thread')).toMatch(/not delivered<\/header><pre>An unproven claim/)
  expect(JSON.stringify(await runtime.threads.document(id))).toContain('"delivery":"refused"')
  const fork = await runtime.threads.fork(id, {
    upTo: lastId(await runtime.threads.messages(id)),
  })
  expect(await textsOf(runtime, fork.id)).toEqual(marked)
  expect(shownIn(await viewOf(runtime, fork.id))).toEqual(marked)
  const imported = await runtime.threads.import(await runtime.threads.export(id))
  expect(await textsOf(runtime, imported.id)).toEqual(marked)
  // A snapshot of the state has the marks, too.
  const fold = {
    state: foldKernel(await runtime.threads.events(id)),
    saved: undefined,
    changedFrom: 0,
  }
  const restored = restoreSnapshot(takeSnapshot(fold)!.parts)!.state
  expect(restored.entries.map(({ delivery }) => delivery)).toEqual([undefined, 'refused'])
})

const lastId = (messages: readonly { readonly id: string }[]): string => messages.at(-1)!.id

test('the model is later shown that its answer was refused; the log keeps the words', async () => {
  const asked: LLMRequest[] = []
  const runtime = await start(clerk(asked))
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  await runtime.threads.run(id, 'One')
  await runtime.threads.run(id, 'Two')
  const seen = asked[1]!.messages.map((one) => (one.type === 'tool_result' ? '' : one.text))
  expect(seen).toEqual([
    'One',
    'An unproven claim.',
    expect.stringMatching(/^\[This answer was not delivered, .*EVIDENCE_MISSING/),
    'Two',
  ])
  await runtime.threads.run(id, 'Prove it')
  // The part of the conversation that did not change is sent as it was.
  const again = asked[2]!.messages.map((one) => (one.type === 'tool_result' ? '' : one.text))
  expect(again.slice(0, 4)).toEqual(seen)
  expect(await textsOf(runtime, id)).toEqual([
    ['An unproven claim.', 'refused'],
    ['An unproven claim.', 'refused'],
    ['Let me look.', 'delivered'],
    ['A proven claim.', 'delivered'],
  ])
})

test('after a repair the first answer stays refused, and the model is told once', async () => {
  const asked: LLMRequest[] = []
  const runtime = await start(clerk(asked, { repairs: 1 }))
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  expect((await runtime.threads.run(id, 'One')).outcome).toBe('completed')
  expect(await textsOf(runtime, id)).toEqual([
    ['An unproven claim.', 'refused'],
    ['Let me look.', 'delivered'],
    ['A proven claim.', 'delivered'],
  ])
  expect(asked[1]!.messages.map((one) => one.type === 'user' && one.text)).toEqual([
    'One',
    false,
    expect.stringMatching(/^Your answer was not delivered: EVIDENCE_MISSING/),
  ])
})

test('answers that no gate checks have no mark', async () => {
  const runtime = await start(clerk([], { gated: false }))
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  await runtime.threads.run(id, 'Prove it')
  const events = JSON.stringify(await runtime.threads.events(id))
  expect(events).not.toContain('"delivery"')
  expect(JSON.stringify(await runtime.threads.messages(id))).not.toContain('"delivery"')
  expect(JSON.stringify(await viewOf(runtime, id))).not.toContain('elivery"')
})

test('a session that is stopped delivers nothing of what was said', async () => {
  const ask = defineTool({
    name: 'read',
    description: 'Asks.',
    args: z.object({}),
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute: () => 'facts',
  })
  const runtime = await start(clerk([], { tools: [ask] }))
  const { id } = await runtime.threads.create({ agent: 'clerk' })
  await runtime.threads.run(id, 'Prove it')
  expect(await textsOf(runtime, id)).toEqual([['Let me look.', 'pending']])
  expect(shownIn(await viewOf(runtime, id))).toEqual([['Let me look.', 'pending']])
  const copy = await runtime.threads.fork(id, {
    upTo: lastId(await runtime.threads.messages(id)),
  })
  expect(await textsOf(runtime, copy.id)).toEqual([['Let me look.', 'refused']])
  await runtime.threads.stop(id)
  await runtime.threads.settled(id)
  expect(await textsOf(runtime, id)).toEqual([['Let me look.', 'refused']])
})

test('HTTP: messages, view and stream carry the mark, and the client has it in its types', async () => {
  const kit = await startKit({ runtime: { agents: [clerk()] } })
  kits.push(kit)
  const { id } = await kit.runtime.threads.create({ agent: 'clerk', tenant: 'acme' })
  await kit.runtime.threads.run(id, 'One')
  const client = createClient({
    url: 'http://localhost',
    apiKey: KEYS.acme.key,
    fetch: (input, init) => kit.http.fetch(new Request(input, init)),
  })
  const messages = await client.threads.messages(id)
  expect(messages.map(({ delivery }) => delivery)).toEqual([undefined, 'refused'])
  expect(messageFromJSON(messages[1]!.message)).toMatchObject({ text: 'An unproven claim.' })
  expect(shownIn(await client.threads.view(id))).toEqual([['An unproven claim.', 'refused']])
  const stream: string[] = []
  for await (const { event } of client.stream(id, { after: '0', untilParked: true }))
    if ('delivery' in event) stream.push(`${event.type} ${event.delivery}`)
  expect(stream).toEqual(['message_added pending', 'delivery_changed refused'])
})

test('a refused answer stays marked in a chat after its agent has no task class any more', async () => {
  const machine = new Machine()
  const first = await machine.boot({ agents: [clerk()] })
  const { id } = await first.threads.create({ agent: 'clerk', tenant: 'acme', clientId: 'c' })
  await first.threads.send(id, 'One')
  await machine.run(5_000)
  expect(await textsOf(first, id)).toEqual([['An unproven claim.', 'refused']])
  await first.stop({ graceMs: 0 })
  const kit = await startKit({
    runtime: { agents: [clerk([], { gated: false })], store: machine.store },
  })
  kits.push(kit)
  const stored = await kit.runtime.threads.events(id)
  const shown = (hold: boolean): string => {
    const events = new ShownEvents(kit.runtime.registry, { hold })
    return JSON.stringify([...stored.flatMap(({ event }) => events.push(event)), ...events.end()])
  }
  // A2A and the doors of other vendors hold such answers back; useChat and AG-UI mark them.
  expect(shown(true)).not.toContain('An unproven claim.')
  expect(shown(false)).toContain('An unproven claim.')
  const response = await kit.http.fetch(
    new Request('http://localhost/agents/clerk/chat/c', {
      headers: { authorization: `Bearer ${KEYS.acme.key}` },
    }),
  )
  const { messages } = (await response.json()) as { messages: { metadata?: unknown }[] }
  expect(messages.at(-1)?.metadata).toMatchObject({ skein: { isVerified: false } })
})

describe('a crash at every commit', () => {
  test.each([0, 1])('leaves the same marks (repairs: %s)', async (repairs) => {
    const whole = repairs === 0 ? 1 : 3
    for (let at = 1; ; at++) {
      const machine = new Machine()
      const commit = machine.store.commit.bind(machine.store)
      let count = 0
      machine.store.commit = async (wanted) => {
        const result = await commit(wanted)
        return ++count === at ? machine.kill() : result
      }
      const agents = [clerk([], { repairs })]
      const first = await machine.boot({ agents })
      const opened = await Promise.race([
        first.threads.create({ agent: 'clerk', message: 'One', clientId: 'c' }),
        machine.run(200).then(() => undefined),
      ])
      await machine.run(5_000)
      const isDead = count >= at
      if (isDead) {
        const second = await machine.boot({ agents })
        await machine.run(30_000)
        runtimes.push(second)
      }
      const [head] = await machine.store.list({ limit: 1 })
      expect(opened ?? head, `commit ${at}`).toBeDefined()
      const state = foldKernel(await machine.store.events(head!.id))
      const marks = state.entries
        .filter(({ message }) => message.type === 'assistant')
        .map(({ delivery }) => delivery)
      expect(marks.slice(-whole), `commit ${at}`).toEqual(
        repairs === 0 ? ['refused'] : ['refused', 'delivered', 'delivered'],
      )
      if (!isDead) break
    }
  })
})
