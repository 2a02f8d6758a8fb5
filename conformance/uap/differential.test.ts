/** Streaming observes, it is no other way to run (UAP §11.4): over random scripts the outcomes are equal. */
import { agent, AgentState, subagent, type Agent, type GenerateResult } from '@skein/agents'
import { loop, plan, react } from '@skein/agents/execution'
import {
  defer,
  isAssistantMessage,
  isToolResultMessage,
  type LLMRequest,
  type Message,
  type Tool,
} from '@skein/ai'
import { calls, fails, says, scripted, type ScriptPart } from '@skein/ai/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anonymous, content } from './support/state.ts'

type Move = 'say' | 'add' | 'two' | 'break' | 'wait' | 'helper' | 'unknown' | 'cut' | 'fail'
const moves: fc.Arbitrary<Move> = fc.constantFrom(
  'say',
  'add',
  'add',
  'two',
  'break',
  'wait',
  'helper',
  'unknown',
  'cut',
  'fail',
)
const toParts: Record<Move, ScriptPart | ScriptPart[]> = {
  say: says('a word or two'),
  add: calls('add', { a: 1, b: 2 }),
  two: [says('both'), calls('add', { a: 1, b: 2 }), calls('break')],
  break: calls('break'),
  wait: [calls('ask'), calls('add', { a: 0, b: 0 })],
  helper: [calls('helper'), calls('add', { a: 3, b: 3 })],
  unknown: calls('nowhere', { x: 1 }),
  cut: calls('add', '{"a": 1, "b'),
  fail: fails('the model broke'),
}

const parameters = { type: 'object' }
const tools = (): Tool[] => [
  { name: 'add', description: 'd', parameters, run: ({ a, b }: { a: number; b: number }) => a + b },
  { name: 'break', description: 'd', parameters, run: () => Promise.reject(new Error('no')) },
  {
    name: 'ask',
    description: 'd',
    parameters,
    run: () => defer({ kind: 'input', request: 'well?' }),
  },
  subagent({
    name: 'helper',
    description: 'd',
    parameters,
    agent: agent({
      model: scripted(({ messages }) =>
        messages.length === 1 ? calls('add', { a: 1, b: 1 }) : says('helped'),
      ),
      tools: [{ name: 'add', description: 'd', parameters, run: () => 2 }],
    }),
    prompt: () => 'help',
  }),
]

const drafts = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 4 }).map((ids) =>
  JSON.stringify({
    steps: ids
      .map((id, at) => ({
        id,
        description: id,
        tool: at === 1 ? 'break' : undefined,
        dependsOn: ids.slice(0, at).filter((_, i) => i % 2 === 0),
      }))
      .reverse(),
  }),
)

interface Script {
  readonly moves: readonly Move[]
  readonly plan: string
}
const scripts: fc.Arbitrary<Script> = fc.record({
  moves: fc.array(moves, { maxLength: 8 }),
  plan: drafts,
})

/** Answers planning with the plan, everything else with the next move, and in the end with a word. */
function worker(
  { moves: list, plan: draft }: Script,
  execution: Agent['execution'],
  sent: LLMRequest[],
): Agent {
  let next = 0
  const model = scripted((request) => {
    sent.push(request)
    if (request.structure) return says(draft)
    if (request.tools.length === 0) return says('thinking')
    const move = list[next++]
    return move ? toParts[move] : says('the end')
  })
  return agent({ model, tools: tools(), execution: execution! })
}

async function settle(run: Promise<GenerateResult>): Promise<unknown> {
  try {
    const { state, turn, stopReason, interrupts } = await run
    return {
      state: content(state),
      turn: anonymous(turn),
      stopReason,
      interrupts: anonymous(interrupts ?? null),
    }
  } catch (error) {
    const { message, code, turn } = error as Error & { code: string; turn: unknown }
    return { message, code, cycles: (turn as { cycles: number }).cycles }
  }
}

const runs = process.env['SKEIN_DEEP'] ? 600 : 70

test.each([
  ['loop', () => loop()],
  ['loop with a limit', () => loop({ maxIterations: 3 })],
  ['react', () => react()],
  ['plan', () => plan()],
])(
  'UAP-150 UAP-149 %s: a stream ends as generate does, and asks the model the same',
  async (_, execution) => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const sent: LLMRequest[][] = [[], []]
        const waited = await settle(
          worker(script, execution(), sent[0]!).generate('go', AgentState.initial()),
        )
        const streamed = await settle(
          worker(script, execution(), sent[1]!).stream('go', AgentState.initial()).result,
        )
        expect(streamed).toEqual(waited)
        const asked = (requests: LLMRequest[]) =>
          anonymous(requests.map(({ messages }) => messages))
        expect(asked(sent[1]!)).toEqual(asked(sent[0]!))
        for (const { messages } of sent.flat()) expect(faults(messages)).toEqual([])
      }),
      { seed: 11, numRuns: runs },
    )
  },
)

test.each([
  ['loop', () => loop()],
  ['react', () => react()],
  ['plan', () => plan()],
])(
  '%s: any interrupted run, answered after a trip through JSON, ends as if no one had waited',
  async (_, execution) => {
    const answering = (list: Tool[]): Tool[] =>
      list.map((tool) => (tool.name === 'ask' ? { ...tool, run: () => 'an answer' } : tool))
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const whole = worker(script, execution(), [])
        const expected = await settle(
          agent({ ...whole, tools: answering([...whole.tools]) }).generate(
            'go',
            AgentState.initial(),
          ),
        )
        const sent: LLMRequest[] = []
        const pausing = worker(script, execution(), sent)
        const outcome = await settle(untilDone(pausing))
        const state = (value: unknown) =>
          (value as { state?: object; message?: string }).state ??
          (value as { message: string }).message
        expect(state(outcome)).toEqual(state(expected))
        for (const { messages } of sent) expect(faults(messages)).toEqual([])
      }),
      { seed: 12, numRuns: Math.ceil(runs / 2) },
    )
  },
)

async function untilDone(pausing: Agent): Promise<GenerateResult> {
  let result = await pausing.generate('go', AgentState.initial())
  while (result.interrupts) {
    const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(result.state)))
    const answers = Object.fromEntries(
      result.interrupts.map(({ id }) => [id, { type: 'result', value: 'an answer' } as const]),
    )
    result = await pausing.resume(restored, answers)
  }
  return result
}

/** What a vendor would refuse: calls without exactly one result before the next message. */
function faults(messages: readonly Message[]): string[] {
  const found: string[] = []
  messages.forEach((message, index) => {
    if (isToolResultMessage(message)) {
      const before = messages[index - 1]
      if (!before || !isAssistantMessage(before)) found.push(`results without calls at ${index}`)
    }
    if (!isAssistantMessage(message) || !message.hasToolCalls) return
    const next = messages[index + 1]
    const answered =
      next && isToolResultMessage(next) ? next.results.map(({ toolCallId }) => toolCallId) : []
    const asked = message.toolCalls!.map(({ toolCallId }) => toolCallId)
    if (answered.join() !== asked.join())
      found.push(`calls ${asked.join()} answered by ${answered.join()}`)
  })
  return found
}
