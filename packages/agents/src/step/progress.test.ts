import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defer, isToolResultMessage, llm, tool, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { memoryCheckpoints } from '../checkpoint/index.ts'
import { agent, AgentState, subagent } from '../index.ts'

const start = AgentState.initial()
const parameters = { type: 'object' }
const build = tool({
  name: 'build',
  description: 'Builds.',
  parameters: z.object({ steps: z.number() }),
  run: async function* ({ steps }) {
    for (let step = 1; step <= steps; step++) yield { step, log: 'x'.repeat(step) }
  },
  toModel: (result) => {
    expectTypeOf(result).toEqualTypeOf<{ step: number; log: string }>()
    return `${result.step} steps`
  },
})
const script = () => scripted([calls('build', { steps: 3 }), says('done')])

describe('a tool that yields its progress', () => {
  test('is shown live, and its last value is the result', async () => {
    const run = agent({ model: script(), tools: [build] }).stream('go', start)
    const seen: string[] = []
    for await (const { uap, upp } of run) {
      if (uap?.type === 'tool_progress') {
        expect(uap.data.toolName).toBe('build')
        seen.push(`progress ${(uap.data.output as { step: number }).step}`)
      }
      if (upp?.type === 'tool_execution_start') seen.push('start')
      if (upp?.type === 'tool_execution_end') seen.push('end')
    }
    expect(seen).toEqual(['start', 'progress 1', 'progress 2', 'progress 3', 'end'])
    const { turn } = await run.result
    expect(turn.toolExecutions[0]?.result).toEqual({ step: 3, log: 'xxx' })
  })

  test('UAP-146 values that come at once are shown after the start of their call, and none is lost', async () => {
    const names = ['one', 'two', 'three']
    const tools = names.map((name): Tool => ({
      name,
      description: 'd',
      parameters,
      run: async function* () {
        yield* [1, 2, 3]
      },
    }))
    const model = scripted([names.map((name) => calls(name)), says('ok')])
    const seen = new Map<string, unknown[]>(names.map((name) => [name, []]))
    for await (const { uap, upp } of agent({ model, tools }).stream('go', start)) {
      if (uap?.type === 'tool_progress') seen.get(uap.data.toolName)!.push(uap.data.output)
      if (upp?.type === 'tool_execution_start' || upp?.type === 'tool_execution_end')
        seen.get(upp.delta.toolName)!.push(upp.type.slice(15))
    }
    for (const name of names) expect(seen.get(name)).toEqual(['start', 1, 2, 3, 'end'])
  })

  test('gives the same result to generate, to llm, and as the tool of a sub-agent', async () => {
    const plain = await agent({ model: script(), tools: [build] }).generate('go', start)
    const bare = await llm({ model: script(), tools: [build] }).generate('go')
    for (const { toolExecutions } of [plain.turn, bare])
      expect(toolExecutions[0]?.result).toEqual({ step: 3, log: 'xxx' })
    const kid = subagent({
      name: 'kid',
      description: 'Builds.',
      parameters,
      agent: agent({ model: script(), tools: [build] }),
      prompt: () => 'go',
    })
    const run = agent({ model: scripted([calls('kid', {}), says('ok')]), tools: [kid] }).stream(
      'go',
      start,
    )
    let inner = 0
    for await (const { uap } of run)
      if (uap?.type === 'subagent_event' && uap.data.innerEvent.uap?.type === 'tool_progress')
        inner++
    expect(inner).toBe(3)
  })

  test('may return, wait or fail; an abort stops it', async () => {
    const variants: Record<string, Tool['run']> = {
      returned: async function* () {
        yield 1
        return 'end'
      },
      nothing: async function* () {},
      waits: async function* () {
        yield 1
        yield defer({ kind: 'input', request: 'well?' })
      },
      fails: async function* () {
        yield 1
        throw new Error('no')
      },
    }
    const results: Record<string, unknown> = {}
    for (const [name, run] of Object.entries(variants)) {
      const model = scripted([calls('work', {}), says('done')])
      const work: Tool = { name: 'work', description: '', parameters, run }
      const { turn, interrupts } = await agent({ model, tools: [work] }).generate('go', start)
      results[name] = interrupts ? interrupts[0]?.request : turn.toolExecutions[0]?.result
    }
    expect(results).toMatchObject({ returned: 'end', waits: 'well?', fails: 'no' })

    let isStopped = false
    const endless: Tool = {
      name: 'work',
      description: '',
      parameters,
      run: async function* () {
        try {
          for (let count = 0; ; count++) {
            yield count
            await new Promise((resolve) => setTimeout(resolve, 1))
          }
        } finally {
          isStopped = true
        }
      },
    }
    const run = agent({ model: scripted([calls('work', {})]), tools: [endless] }).stream(
      'go',
      start,
    )
    let events = 0
    for await (const { uap } of run) if (uap?.type === 'tool_progress' && ++events === 3) break
    await run.result.catch(() => {})
    await expect.poll(() => isStopped).toBe(true)
    expect(events).toBe(3)
  })
})

describe('a tool with another form for the model', () => {
  test('the model and the history see the form, the application sees the result', async () => {
    const model = script()
    const store = memoryCheckpoints({ journal: true })
    const worker = agent({ model, tools: [build], checkpoints: store, sessionId: 's' })
    const { turn, state } = await worker.generate('go', start)
    const sent = model.requests[1]!.messages.find(isToolResultMessage)
    expect(sent?.results[0]?.result).toBe('3 steps')
    expect(state.messages.find(isToolResultMessage)?.results[0]?.result).toBe('3 steps')
    expect(turn.toolExecutions[0]?.result).toEqual({ step: 3, log: 'xxx' })
    await worker.flush()
    const stored = AgentState.fromJSON(await store.load('s'))
    expect(stored.messages.find(isToolResultMessage)?.results[0]?.result).toBe('3 steps')
  })

  test('a form that fails is an error of the call, which says that the tool has run', async () => {
    const broken: Tool = {
      name: 'work',
      description: '',
      parameters,
      run: () => 1,
      toModel: () => {
        throw new Error('no form.')
      },
    }
    const model = scripted([calls('work', {}), says('I see.')])
    const { turn } = await agent({ model, tools: [broken] }).generate('go', start)
    expect(turn.toolExecutions[0]).toMatchObject({
      isError: true,
      result: expect.stringMatching(/has run.*no form/),
    })
  })
})
