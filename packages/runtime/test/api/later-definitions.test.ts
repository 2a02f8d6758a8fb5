import { join } from 'node:path'
import { says, scripted } from '@skein/ai/testing'
import {
  catalog,
  createRegistry,
  defineAgent,
  DefinitionError,
  definePrompt,
  discover,
  type AgentDefinition,
} from '@skein/runtime'
import { expect, test } from 'vitest'
import { logOf, Machine } from './machine.ts'

const pack = join(import.meta.dirname, '..', 'fixtures', 'pack-0.2')

const prompt = definePrompt({ name: 'p', prompt: '', model: scripted(() => says('Hi.')) })
const pair = defineAgent({
  name: 'pair',
  maxSessionTurns: 2,
  sideA: { prompt },
  sideB: { handler: () => 'Yes.' },
})

test('definitions of Standard Agents 0.2.0 load beside those of 0.1.0', async () => {
  const registry = await discover(pack)
  expect(registry.warnings).toEqual([])
  expect(catalog(registry)).toMatchObject([
    { name: 'classic', type: 'dual_ai' },
    { name: 'counter', type: 'dual_ai', sides: { b: 'counter/b' } },
    { name: 'desk', type: 'ai_human', sides: { b: null }, tools: ['count_words', 'classic'] },
  ])
})

test('a person talks to side A, whose subagent has code as its side B', async () => {
  const machine = new Machine()
  const runtime = await machine.boot({ registry: await discover(pack) })
  const { id } = await runtime.threads.create({ agent: 'desk', message: 'How long is it?' })
  await machine.timers.advance(100)
  expect((await runtime.threads.settled(id)).text).toBe('It has "3 words".')
  const [child] = await machine.store.list({ parentId: id })
  expect(child).toMatchObject({ agent: 'counter', lifecycle: 'terminated' })
  const log = await logOf(machine.store, child!.id)
  expect(log).toContainEqual(expect.objectContaining({ type: 'value_set', key: 'words', value: 3 }))
  expect(log.filter(({ type }) => type === 'model_requested')).toHaveLength(1)
  expect(machine.errors).toEqual([])
})

test('a handler that answers takes turns with a model; the session ends by its limit', async () => {
  const machine = new Machine()
  const runtime = await machine.boot({ agents: [pair] })
  const { id } = await runtime.threads.create({ agent: 'pair', message: 'go' })
  await machine.timers.advance(100)
  const texts = (await runtime.threads.get(id)).lifecycle
  expect(texts).toBe('failed')
  const said = (await logOf(machine.store, id)).flatMap((event) =>
    event.type === 'message_added' ? [[event.side, JSON.stringify(event.message.content)]] : [],
  )
  expect(said.map(([side]) => side)).toEqual(['b', 'a', 'b'])
  expect(said.at(-1)![1]).toContain('Yes.')
})

test('a handler runs again after a crash, with the same key, and its changes are stored once', async () => {
  const machine = new Machine()
  const keys: string[] = []
  const bot = defineAgent({
    name: 'bot',
    sideA: {
      handler: async (state, { message, idempotencyKey }) => {
        keys.push(idempotencyKey)
        state.updateValue('count', (count) => Number(count ?? 0) + 1)
        if (keys.length === 1) await machine.kill()
        return `You said ${message}.`
      },
    },
    sideB: { human: true },
  })
  const first = await machine.boot({ agents: [bot] })
  const { id } = await first.threads.create({ agent: 'bot', message: 'hello' })
  expect(await machine.run(1_000)).toBe('died')
  const second = await machine.boot({ agents: [bot] })
  await machine.run(60_000)
  expect((await second.threads.settled(id)).text).toBe('You said hello.')
  expect(keys).toEqual([keys[0], keys[0]])
  expect(await second.threads.values.get(id, 'count')).toBe(1)
})

test('a handler runs again if a value that it read was changed meanwhile', async () => {
  const machine = new Machine()
  let runs = 0
  const bot = defineAgent({
    name: 'bot',
    sideA: {
      handler: async (state) => {
        const seen = Number((await state.getValue('count')) ?? 0)
        if (++runs === 1) await runtime.threads.values.set(id, 'count', 10)
        state.setValue('count', seen + 1)
        return 'Counted.'
      },
    },
  })
  const runtime = await machine.boot({ agents: [bot] })
  const { id } = await runtime.threads.create({ agent: 'bot' })
  await runtime.threads.send(id, 'go')
  await machine.timers.advance(1_000)
  expect(runs).toBe(2)
  expect(await runtime.threads.values.get(id, 'count')).toBe(11)
  expect((await runtime.threads.settled(id)).text).toBe('Counted.')
  expect(machine.errors).toEqual([])
})

test.each([
  ['throws', () => Promise.reject(new Error('No luck.')), 'The handler of bot/a failed: No luck.'],
  ['returns nothing', () => undefined, 'The handler of bot/a returned no text.'],
])('a handler that %s fails the session, with the cause', async (_, handler, message) => {
  const machine = new Machine()
  const bot = defineAgent({ name: 'bot', sideA: { handler } })
  const runtime = await machine.boot({ agents: [bot] })
  const { id } = await runtime.threads.create({ agent: 'bot', message: 'hello' })
  await machine.timers.advance(100)
  const end = (await logOf(machine.store, id)).find(({ type }) => type === 'session_end')
  expect(end).toMatchObject({ outcome: 'failed', reason: 'handler_error', message })
})

test('a hidden subagent starts by itself and is not offered to the model', async () => {
  const machine = new Machine()
  const model = scripted(() => says('Hi.'))
  const main = defineAgent({
    name: 'main',
    sideA: {
      prompt: definePrompt({ name: 'm', prompt: '', model }),
      subagents: [{ agent: pair, hidden: true, immediate: true, blocking: false }],
    },
  })
  const runtime = await machine.boot({ agents: [main] })
  const { id } = await runtime.threads.create({ agent: 'main', message: 'go' })
  await machine.timers.advance(100)
  expect(await machine.store.list({ parentId: id })).toMatchObject([{ agent: 'pair' }])
  expect(model.requests[0]?.tools ?? []).toEqual([])
})

const wrong: readonly [string, AgentDefinition, string][] = [
  ['a person as side A', { name: 'x', sideA: { human: true } }, 'sideA: must be a model'],
  [
    'a person in dual_ai',
    { name: 'x', type: 'dual_ai', maxSessionTurns: 1, sideA: { prompt }, sideB: { human: true } },
    'type: must be ai_human or left out, because side B is a person',
  ],
  [
    'two players of one side',
    { name: 'x', sideA: { prompt, handler: () => '' } },
    'sideA.handler: must be left out, because the side has a prompt',
  ],
  [
    'subagents of a handler',
    { name: 'x', sideA: { handler: () => '', subagents: [pair] } },
    'sideA.subagents: must be left out',
  ],
  [
    'a subagent with a person',
    {
      name: 'x',
      sideA: { prompt, subagents: [{ name: 'y', sideA: { prompt }, sideB: { human: true } }] },
    },
    'sideA.subagents[0]: a subagent must have two sides that are no people, but "y" has not',
  ],
  [
    'two tools of one name',
    { name: 'x', sideA: { prompt, subagents: [pair, { agent: pair }] } },
    'two tools of this side are called "pair"',
  ],
  [
    'an unknown agent',
    { name: 'x', sideA: { prompt, subagents: ['pear', pair] } },
    'sideA.subagents[0].agent: there is no agent "pear"',
  ],
  [
    'a hidden subagent that never starts',
    { name: 'x', sideA: { prompt, subagents: [{ agent: pair, hidden: true }] } },
    'sideA.subagents[0].hidden: a hidden subagent never starts unless it is immediate',
  ],
  // Standard Agents 0.1.0: without a type, side B is a person.
  [
    'two prompts without a type',
    { name: 'x', sideA: { prompt }, sideB: { prompt } },
    'sideB: must',
  ],
]

test.each(wrong)('%s is a problem that names the field', (_, agent, problem) => {
  const load = () => createRegistry({ agents: [agent] })
  expect(load).toThrow(DefinitionError)
  expect(load).toThrow(problem)
})
