/** How sub-agents of sub-agents end when something above or below them goes wrong. */
import { agent, AgentState, subagent, type AgentOptions } from '@skein/agents'
import type { AgentStreamEvent, ExecutionStrategy } from '@skein/agents'
import { recordEvents } from '@skein/agents/testing'
import { defer, type Tool } from '@skein/ai'
import { calls, fails, says, scripted, waits, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { anonymous } from './support/state.ts'

const parameters = { type: 'object', properties: {} }
const start = AgentState.initial()

function helper(name: string, options: AgentOptions, timeoutMs?: number): Tool {
  const prompt = (): string => name
  return subagent({ name, description: 'd', parameters, agent: agent(options), prompt, timeoutMs })
}

const calling = (name: string) => calls(name, {}, { id: `call ${name}` })

interface Told {
  /** The names of the sub-agents from the outside, and `start`, `event`, `success` or `failure`. */
  readonly what: string
  /** The agent that called the sub-agent and its step, and the identity of the sub-agent's run. */
  readonly ids: readonly (string | number)[]
}

/** What an event of the outermost stream tells about sub-agents at every depth. */
function told({ uap }: AgentStreamEvent, above: readonly string[] = []): Told[] {
  if (!uap || !('subagentId' in uap.data)) return []
  const { subagentId, subagentType, parentToolCallId } = uap.data
  const path = [...above, subagentType]
  const kind = uap.type === 'subagent_end' ? howEnded(uap.data) : uap.type.slice('subagent_'.length)
  const what = `${path.join('/')} ${kind}`
  const own = { what, ids: [uap.agentId, uap.step, subagentId, parentToolCallId] }
  return uap.type === 'subagent_event' ? [own, ...told(uap.data.innerEvent, path)] : [own]
}

function howEnded({
  success,
  error,
}: {
  readonly success: boolean
  readonly error?: string
}): string {
  return success ? 'success' : `failure: ${error}`
}

const LIMIT_MS = 60_000

/** A chain of sub-agents in which each calls the next; the last one follows the script. */
function chain(
  names: readonly string[],
  script: ScriptStep,
  more: { execution?: ExecutionStrategy; limited?: string } = {},
): Tool {
  const [name, ...rest] = names
  const { execution, limited } = more
  const timeoutMs = name === limited ? LIMIT_MS : undefined
  if (rest.length === 0) return helper(name!, { model: scripted([script]) }, timeoutMs)
  const tools = [chain(rest, script, more)]
  const model = scripted([calling(rest[0]!), says('done')])
  return helper(name!, { model, tools, execution }, timeoutMs)
}

describe.each([1, 2, 3])('every start has one end, %i deep,', (depth) => {
  const names = ['a', 'b', 'c'].slice(0, depth)
  const paths = names.map((_, index) => names.slice(0, index + 1).join('/'))
  const forever: ScriptStep = [says('part'), waits(Infinity)]

  /** Reads a run to its end; `onDeepest` is called when the last sub-agent has begun to answer. */
  async function endsOf(tool: Tool, onDeepest: (stream: { abort(): void }) => void) {
    const model = scripted([calling('a'), says('done')])
    const stream = agent({ model, tools: [tool] }).stream('x', start)
    const seen: Told[] = []
    try {
      for await (const event of stream) {
        const now = told(event)
        seen.push(...now)
        if (now.at(-1)?.what === `${paths.at(-1)} event`) onDeepest(stream)
      }
    } catch (error) {
      expect(error).toMatchObject({ code: 'CANCELLED' })
    }
    for (const path of paths) {
      const own = seen.filter(
        ({ what }) => what.startsWith(`${path} `) || what.startsWith(`${path}/`),
      )
      expect([own[0]?.what, own.at(-1)?.ids]).toEqual([`${path} start`, own[0]?.ids])
    }
    return seen.map(({ what }) => what).filter((what) => !what.endsWith('event'))
  }

  /** All starts, then all ends from the inside; those from this depth on are failures. */
  const failedFrom = (first: number, error = 'The call was cancelled.'): string[] => {
    const ends = paths.map((path, at) => `${path} ${at < first ? 'success' : `failure: ${error}`}`)
    return [...paths.map((path) => `${path} start`), ...ends.toReversed()]
  }

  test.each([
    ['built-in strategies', undefined],
    ['strategies of the application', custom()],
  ])('UAP-115 after an abort, with %s', async (_, execution) => {
    const tool = chain(names, forever, { execution })
    expect(await endsOf(tool, (stream) => stream.abort())).toEqual(failedFrom(0))
  })

  test.each(names)('UAP-115 after the time limit of the call of %s', async (limited) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const tool = chain(names, forever, { limited })
    const ends = await endsOf(tool, () => void vi.advanceTimersByTime(LIMIT_MS))
    expect(ends).toEqual(failedFrom(names.indexOf(limited)))
  })

  test('UAP-115 after a failure of the innermost', async () => {
    const ends = await endsOf(chain(names, fails('broken')), () => {})
    expect(ends).toEqual(failedFrom(depth - 1, 'broken'))
  })
})

describe('a sub-agent that fails after its own sub-agent has ended', () => {
  const failing = (): Record<string, AgentOptions> => ({
    'in its next inference': { model: scripted([calling('inner'), fails('broken')]) },
    'in a hook for the results': {
      model: scripted([calling('inner'), says('done')]),
      strategy: { onObserve: () => Promise.reject(new Error('broken')) },
    },
    'in a strategy of the application': {
      model: scripted([calling('inner'), fails('broken')]),
      execution: custom(),
    },
  })

  test('UAP-150 UAP-124 after an answer leaves the traces from before the question too', async () => {
    const ask: Tool = {
      name: 'ask',
      description: 'd',
      parameters,
      run: () => defer({ kind: 'input', request: 'well?' }),
    }
    const tools = [helper('inner', { model: scripted(() => says('found')) }), ask]
    const model = scripted(({ messages }) => {
      const wanted = [calling('inner'), calling('ask'), calls('inner', {}, { id: 'again' })]
      return wanted[(messages.length - 1) / 2] ?? fails('broken')
    })
    const script = (messages: readonly unknown[]) =>
      messages.length > 2 ? says('ok') : calling('middle')
    const parent = agent({
      model: scripted(({ messages }) => script(messages)),
      tools: [helper('middle', { model, tools })],
    })
    const { state } = await parent.generate('x', start)
    const answers = { [state.interrupts[0]!.id]: { type: 'result', value: 'yes' } } as const
    const { state: plain } = await parent.resume(state, answers)
    const streamed = await recordEvents(parent.resumeStream(state, answers))
    const ids = plain.subagentTraces[0]?.children?.map(({ parentToolCallId }) => parentToolCallId)
    expect(ids).toEqual(['call inner', 'again'])
    expect(anonymous(streamed.result!.state.toJSON())).toEqual(anonymous(plain.toJSON()))
  })

  test('UAP-150 UAP-123 UAP-117 by its time limit, while another works, leaves the traces of both', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const family = () => {
      const slow = scripted(() => {
        queueMicrotask(() => void vi.advanceTimersByTime(LIMIT_MS))
        return waits(Infinity)
      })
      const tools = [chain(['inner'], says('found')), helper('slow', { model: slow })]
      const model = scripted([calling('inner'), calling('slow')])
      const middle = helper('middle', { model, tools }, LIMIT_MS)
      return agent({ model: scripted([calling('middle'), says('ok')]), tools: [middle] })
    }
    const { state } = await family().generate('x', start)
    const { result } = await recordEvents(family().stream('x', start))
    const children = state.subagentTraces[0]?.children
    expect(children?.map(({ subagentType, success }) => [subagentType, success])).toEqual([
      ['inner', true],
      ['slow', false],
    ])
    expect(anonymous(state.toJSON())).toEqual(anonymous(result!.state.toJSON()))
  })

  test.each(Object.keys(failing()))(
    'UAP-150 UAP-123 %s leaves that trace and its tokens',
    async (name) => {
      const family = () => {
        const tools = [chain(['inner'], says('found'))]
        const middle = helper('middle', { ...failing()[name]!, tools })
        return agent({ model: scripted([calling('middle'), says('ok')]), tools: [middle] })
      }
      const { state } = await family().generate('x', start)
      const { result } = await recordEvents(family().stream('x', start))
      expect(state.subagentTraces).toMatchObject([
        {
          subagentType: 'middle',
          success: false,
          children: [{ subagentType: 'inner', success: true, result: 'found' }],
        },
      ])
      expect(state.run?.subagentUsage).toEqual(result!.state.run?.subagentUsage)
      expect(anonymous(state.toJSON())).toEqual(anonymous(result!.state.toJSON()))
    },
  )
})
