import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent } from '../definitions/define-agent.ts'
import { defineHook, definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import type { HookDefinition } from '../definitions/hook-definition.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import { createRuntime, type EmbeddedRuntime } from '../runtime.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

const ran: unknown[] = []

function worker(risk: 'write_low_risk' | 'write_high_risk'): ToolDefinition {
  const shared = {
    name: 'work',
    description: 'Works.',
    args: z.object({ amount: z.number() }),
    execute: (state: ThreadState, { amount }: { amount: number }) => {
      ran.push(amount)
      state.setValue('amount', amount)
      return { worked: amount }
    },
  }
  if (risk === 'write_low_risk') return defineTool({ ...shared, risk })
  const rollback = () => ({ type: 'manual' as const, target: 'work', payload: 'Undo it.' })
  return defineTool({ ...shared, risk, rollback })
}

/** An agent whose tool `start` does what the test says; `work` is listed in no prompt. */
async function start(
  execute: (state: ThreadState) => unknown,
  {
    work = worker('write_low_risk'),
    uses = ['work'],
    hooks = [],
  }: {
    work?: ToolDefinition
    uses?: readonly string[]
    hooks?: readonly HookDefinition[]
  } = {},
) {
  ran.length = 0
  const begin = defineTool({
    name: 'begin',
    description: 'Begins.',
    args: z.object({}),
    risk: 'write_low_risk',
    uses,
    execute: async (state) => ((await execute(state)) ?? 'begun') as string,
  })
  const model = scripted(({ messages }) => {
    const told = messages.find((message) => message.type === 'tool_result')
    return told ? says(String(told.results[0]?.result)) : calls('begin', {})
  })
  const prompt = definePrompt({ name: 'p', prompt: 'P', model, tools: [begin], hooks })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'a', sideA: { prompt } })],
    tools: [work],
  })
  opened.push(runtime)
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'a' })
  const { text } = await runtime.threads.run(id, 'Go.')
  await runtime.idle()
  return { runtime, id, text, model }
}

test('queueTool runs a tool after the call, once, and its result is in the history', async () => {
  const { runtime, id } = await start((state) => void state.queueTool('work', { amount: 5 }))
  expect(ran).toEqual([5])
  expect(await runtime.threads.values.get(id, 'amount')).toBe(5)
  const messages = await runtime.threads.messages(id, { includeSilent: true })
  expect(messages.map(({ message }) => message.text)).toContain('[Result of work]\n{"worked":5}')
  expect(await runtime.threads.effects.list(id)).toEqual([])
})

test('a tool that throws queues nothing, and a tool may queue only what it uses', async () => {
  await start((state) => {
    state.queueTool('work', { amount: 5 })
    throw new Error('no')
  })
  expect(ran).toEqual([])
  const refused = await start((state) => state.queueTool('work', { amount: 5 }), { uses: [] })
  expect(refused.text).toContain('may not queue the tool "work"')
  const unknown = await start((state) => state.queueTool('other', {}), { uses: ['work'] })
  expect(unknown.text).toContain('may not queue the tool "other"')
  expect(ran).toEqual([])
})

test('hooks may queue every tool; nobody can schedule one by its name', async () => {
  const hook = defineHook({
    hook: 'tool_call_done',
    id: 'h',
    execute: (state) => void state.queueTool('work', { amount: 7 }),
  })
  const { runtime, id, text } = await start(
    (state) => state.scheduleEffect('tool:work', { amount: 1 }, 0),
    { hooks: [hook] },
  )
  expect(text).toContain('There is no effect "tool:work"')
  expect(ran).toEqual([7])
  await expect(
    runtime.threads.effects.schedule(id, 'tool:work', { amount: 1 }, 0),
  ).rejects.toMatchObject({ code: 'EFFECT_NOT_FOUND' })
})

test('a queued tool of high risk waits for a person, and runs once approved', async () => {
  const { runtime, id } = await start((state) => void state.queueTool('work', { amount: 9 }), {
    work: worker('write_high_risk'),
  })
  expect(ran).toEqual([])
  const [item] = await runtime.inbox.list()
  expect(item).toMatchObject({ threadId: id, risk: 'write_high_risk', arguments: { amount: 9 } })
  await runtime.inbox.approve({ threadId: id, interruptId: item!.interruptId, by: 'ann' })
  await runtime.idle()
  expect(ran).toEqual([9])
})

test('other names: getChildThread, getFileStats, readdirFile, unlinkFile, renameFile', async () => {
  const seen: unknown[] = []
  await start(async (state) => {
    seen.push(state.getChildThread('nobody'))
    await state.writeFile('/d/a.txt', 'a')
    seen.push(state.getFileStats('/d/a.txt')?.sizeBytes)
    state.renameFile('/d/a.txt', '/d/b.txt')
    seen.push(state.readdirFile('/d/').map(({ path }) => path))
    state.unlinkFile('/d/b.txt')
    seen.push(state.listFiles())
  })
  expect(seen).toEqual([null, 1, ['/d/b.txt'], []])
})
