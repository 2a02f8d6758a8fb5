import { expect, test } from 'vitest'
import { llm, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { z } from 'zod'
import { createRuntime } from '../runtime.ts'
import { defineAgent } from './define-agent.ts'
import { definePrompt } from './define.ts'
import { defineTool } from './define-tool.ts'
import { inWorker } from './in-worker.ts'

const module = new URL('../../test/fixtures/worker-tool.ts', import.meta.url)
const schema = z.object({ act: z.string(), text: z.string().optional() })
const resourceLimits = { maxOldGenerationSizeMb: 32 }

const spellings = {
  tool: (timeoutMs?: number) =>
    tool({
      name: 'act',
      description: 'Acts.',
      parameters: schema,
      risk: 'read_only',
      timeoutMs,
      run: inWorker(module, { resourceLimits }),
    }),
  defineTool: (timeoutMs?: number) =>
    defineTool({
      name: 'act',
      description: 'Acts.',
      args: schema,
      risk: 'read_only',
      timeoutMs,
      execute: inWorker(module, { resourceLimits }),
    }),
}

/** Runs one call in a runtime, and returns the result that the model reads. */
async function result(
  args: z.infer<typeof schema>,
  {
    spelling = 'defineTool',
    timeoutMs,
  }: { spelling?: keyof typeof spellings; timeoutMs?: number } = {},
): Promise<unknown> {
  const model = scripted([calls('act', args), says('Done.')])
  const tools = [spellings[spelling](timeoutMs)]
  const prompt = definePrompt({ name: 'desk', prompt: 'Act.', model, tools })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'desk', sideA: { prompt } })],
  })
  await runtime.start()
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.run(thread.id, 'Act.')
  await runtime.stop()
  const last = model.requests[1]?.messages.at(-1)
  return last?.type === 'tool_result' ? last.results[0]?.result : undefined
}

test.each(['tool', 'defineTool'] as const)(
  '%s: arguments and result are JSON',
  async (spelling) => {
    expect(await result({ act: 'echo', text: 'hé' }, { spelling })).toEqual({
      text: 'hé',
      name: 'act',
      hasKey: true,
    })
    expect(await result({ act: 'nothing' }, { spelling })).toBe(null)
  },
)

test('arguments are checked before a worker starts', async () => {
  expect(await result({ act: 1 } as never)).toMatch('The arguments of')
})

test('an error of the tool is the result of the call', async () => {
  expect(await result({ act: 'throw' })).toBe('no such page')
  expect(await result({ act: 'big' })).toMatch(/BigInt/)
})

test('the state of the thread is refused, not undefined', async () => {
  expect(await result({ act: 'state' })).toMatch('has no ThreadState')
})

test('a timeout ends an endless loop, and the process goes on', async () => {
  const startedAt = performance.now()
  expect(await result({ act: 'loop' }, { timeoutMs: 300 })).toMatch('took longer than 300 ms')
  expect(performance.now() - startedAt).toBeLessThan(5000)
})

test('a stop of the thread ends an endless loop', async () => {
  const model = scripted([calls('act', { act: 'loop' }), says('Done.')])
  const prompt = definePrompt({
    name: 'desk',
    prompt: 'Act.',
    model,
    tools: [spellings.defineTool()],
  })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'desk', sideA: { prompt } })],
  })
  await runtime.start()
  const thread = await runtime.threads.create({ agent: 'desk' })
  await runtime.threads.send(thread.id, 'Act.')
  await expect
    .poll(async () => (await runtime.threads.events(thread.id)).map(({ event }) => event.type))
    .toContain('tool_execution_start')
  await runtime.threads.stop(thread.id)
  const { outcome } = await runtime.threads.settled(thread.id)
  expect(outcome).toBe('stopped')
  await runtime.stop()
})

test('the end of the worker is an error of the call: exit, memory, an error nobody caught', async () => {
  expect(await result({ act: 'exit' })).toMatch('ended with exit code 7')
  expect(await result({ act: 'late' })).toMatch('ended with an error: later')
  expect(await result({ act: 'fill' })).toMatch('more memory than its limit of 32 MB')
})

test('a tool of a worker works in llm() too', async () => {
  const model = scripted([calls('act', { act: 'echo', text: 'a' }), says('Done.')])
  const turn = await llm({ model, tools: [spellings.tool()] }).generate('Act.')
  expect(turn.toolExecutions[0]).toMatchObject({ result: { text: 'a' }, isError: false })
})

test('a module without a function, and a path that is no URL, say so', async () => {
  const wrong = inWorker(new URL('data:text/javascript,export const a = 1'))
  await expect(wrong({}, { signal: new AbortController().signal })).rejects.toThrow(
    'default export',
  )
  expect(() => inWorker('./x.ts' as never)).toThrow('must be a URL')
})
