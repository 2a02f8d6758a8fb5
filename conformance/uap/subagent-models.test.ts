/** Which model and which context the runs of sub-agents have: at every depth, and after an interrupt. */
import {
  agent,
  AgentState,
  subagent,
  type Agent,
  type AgentContext,
  type ModellessAgent,
} from '@skein/agents'
import { defer, type Tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

const start = AgentState.initial()
const parameters = { type: 'object', properties: {} }
const forms = ['generate', 'stream'] as const

function helper(name: string, child: Agent | ModellessAgent): Tool {
  return subagent({ name, description: 'd', parameters, agent: child, prompt: () => name })
}

/** Waits for an answer. */
const ask: Tool = {
  name: 'ask',
  description: 'd',
  parameters,
  run: () => defer({ kind: 'input', request: null }),
}

/** Calls the tool that its system prompt names, then answers. */
function model() {
  return scripted(({ messages, system }) =>
    messages.length === 1 ? calls(String(system), {}, { id: String(system) }) : says('done'),
  )
}

const systems = ({ requests }: ReturnType<typeof model>) => requests.map(({ system }) => system)
const configs = ({ requests }: ReturnType<typeof model>) =>
  requests.map(({ config }) => config.headers)

describe.each(forms)('%s', (form) => {
  const run = (worker: Agent) =>
    form === 'generate' ? worker.generate('x', start) : worker.stream('x', start).result
  test('UAP-103 UAP-104 UAP-105 a model is lent by the direct caller, before and after an interrupt', async () => {
    const headers = (name: string) => ({ headers: { 'x-of': name } })
    const [top, own] = [model(), model()]
    const inner = agent({ system: 'ask', tools: [ask] })
    const lent = agent({ system: 'inner', tools: [helper('inner', inner)] })
    const middle = agent({ model: own, config: headers('own'), system: 'lent', tools: [helper('lent', lent)] }) // prettier-ignore
    const plain = agent({ model: own, system: 'ask', tools: [ask] })
    const cases: [ModellessAgent, Record<string, unknown>[], Record<string, unknown>[]][] = [
      // The models of the sub-agents: those lent by the outermost agent, and the one that has its own.
      [lent, [{ 'x-of': 'top' }, { 'x-of': 'top' }], []],
      [middle, [], [{ 'x-of': 'own' }, { 'x-of': 'own' }, { 'x-of': 'own' }]],
      [plain, [], [undefined as never]],
    ]
    for (const [child, byTop, byOwn] of cases) {
      for (const { requests } of [top, own]) (requests as unknown[]).length = 0
      const tools = [helper('child', child)]
      const parent = agent({ model: top, config: headers('top'), system: 'child', tools })
      const { state, interrupts } = await run(parent)
      expect(interrupts).toHaveLength(1)
      expect(configs(top)).toEqual([{ 'x-of': 'top' }, ...byTop])
      expect(configs(own)).toEqual(byOwn)
      const asked = [top, own].map(systems)
      for (const { requests } of [top, own]) (requests as unknown[]).length = 0
      const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
      const answers = { [interrupts![0]!.id]: { type: 'result', value: 'yes' } } as const
      const end = await (form === 'generate'
        ? parent.resume(restored, answers)
        : parent.resumeStream(restored, answers).result)
      expect(end.stopReason).toBe('complete')
      // Each agent that had asked asks its model once more, the innermost first.
      expect([top, own].map(systems)).toEqual(asked.map((list) => list.toReversed()))
      expect(configs(top)).toEqual([...byTop, { 'x-of': 'top' }])
      expect(configs(own)).toEqual(byOwn)
    }
  })

  test('UAP-102 UAP-100 a tool is given the state of its own step, next to what the application adds', async () => {
    const seen: Partial<AgentContext & { own: number }>[] = []
    const states: string[] = []
    const look: Tool = { ...ask, name: 'look', run: (_: unknown, context: AgentContext) => void seen.push(context) } // prettier-ignore
    for (const open of [undefined, () => ({ context: { own: 1 } })]) {
      seen.length = states.length = 0
      const script = scripted([calls('look', {}, { id: 'a' }), calls('look', {}, { id: 'b' }), says('ok')]) // prettier-ignore
      const worker = agent({ model: script, tools: [look], sessionId: 's', open })
      const options = {
        commit: (effect: { type: string; state?: AgentState }) => {
          if (effect.type === 'inference_end') states.push(effect.state!.id)
        },
      }
      await (form === 'generate'
        ? worker.generate('x', start, options)
        : worker.stream('x', start, options).result)
      expect(seen).toHaveLength(2)
      seen.forEach((context, index) =>
        expect(context).toMatchObject({
          agentId: worker.id,
          parentModel: script,
          stateId: states[index],
          sessionId: 's',
          step: index + 1,
          toolCallId: ['a', 'b'][index],
          idempotencyKey: `s:${['a', 'b'][index]}`,
          streaming: form === 'stream',
          onSubagentEvent: expect.any(Function) as unknown,
          ...(open && { own: 1 }),
        }),
      )
    }
  })
})

test('UAP-119 the tool has every field of its definition', () => {
  const child = agent({ model: model() })
  const fields = {
    name: 'helper',
    description: 'Helps.',
    parameters: { type: 'object', properties: { query: { type: 'string' } } },
    metadata: { own: { a: 1 } },
    risk: 'write_high_risk',
    sequential: true,
    dependsOn: ['look'],
    timeoutMs: 1234,
  } as const
  const approval = () => true
  const made = subagent({ ...fields, approval, agent: child, prompt: () => 'go' })
  expect(made).toMatchObject(fields)
  expect(made.approval).toBeTypeOf('function')
  const plain = subagent({
    name: 'n',
    description: 'd',
    parameters,
    agent: child,
    prompt: () => '',
  })
  for (const name of [
    'metadata',
    'risk',
    'sequential',
    'dependsOn',
    'timeoutMs',
    'approval',
  ] as const)
    // prettier-ignore
    expect(plain[name], name).toBeUndefined()
})
