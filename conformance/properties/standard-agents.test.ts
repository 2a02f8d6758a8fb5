/**
 * Properties of Standard Agents 0.1.0, chapter Agents: agents of one and two sides with generated stop rules, and
 * models that do generated things, are run, and the turns, the number of steps and the end are predicted from §2, §3
 * and §5. Definitions are generated from §1, §3 and §4 and spoilt.
 *
 * Where the specification leaves a hole, the model reads it so: all calls of a step run before the step is judged, a
 * failure wins over a stop in the same step, a side without stop tool and response stop yields when it has said
 * something, steps are counted per side and session, and a limit ends the session as failed.
 *
 * With SKEIN_DEEP it tries twenty times as many cases.
 */
import { calls, says, scripted, type ScriptPart } from '@skein/ai/testing'
import { type AgentDefinition, createRegistry, DefinitionError, definePrompt } from '@skein/runtime'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pair, requestsOf, type SideSetup, solo, tool } from '../standard-agents/support/agents.ts'
import { simulate } from '../standard-agents/support/simulate.ts'
import { type Json, type Path, runs } from './support.ts'

type Call = 'look' | 'hand' | 'finish' | 'give_up'
interface Move {
  readonly text: string | undefined
  readonly calls: readonly Call[]
}
interface Side {
  readonly stopOnResponse: boolean
  readonly hasStopTool: boolean
  readonly maxSteps: number
  readonly stops: boolean
  readonly fails: boolean
  readonly moves: readonly Move[]
}
interface Plan {
  readonly isDual: boolean
  readonly sides: readonly [Side, Side]
  readonly maxSessionTurns: number
}

const move: fc.Arbitrary<Move> = fc.oneof(
  fc.constant<Move>({ text: 'words', calls: [] }),
  fc.record({
    text: fc.option(fc.constant('words'), { nil: undefined }),
    calls: fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constant<Call>('look') },
        fc.constantFrom<Call[]>('hand', 'finish', 'give_up'),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  }),
)
const side: fc.Arbitrary<Side> = fc.record({
  stopOnResponse: fc.boolean(),
  hasStopTool: fc.boolean(),
  maxSteps: fc.integer({ min: 1, max: 3 }),
  stops: fc.boolean(),
  fails: fc.boolean(),
  moves: fc.array(move, { minLength: 1, maxLength: 6 }),
})
const plans: fc.Arbitrary<Plan> = fc.record({
  isDual: fc.boolean(),
  sides: fc.tuple(side, side),
  maxSessionTurns: fc.integer({ min: 1, max: 4 }),
})

/** §5: session bindings, stop tool, response; the limits come last. */
function endOfStep(one: Side, { text, calls: made }: Move): string | undefined {
  if (one.fails && made.includes('give_up')) return 'session_fail'
  if (one.stops && made.includes('finish')) return 'session_stop'
  if (one.hasStopTool && made.includes('hand')) return 'stop_tool'
  const isAnswer = made.length === 0 && (one.stopOnResponse || !one.hasStopTool)
  if (text !== undefined && isAnswer) return 'response'
  return undefined
}

function predict(plan: Plan) {
  const turns: string[] = []
  const asked = [0, 0]
  for (let turn = 0; ; turn++) {
    const index = plan.isDual ? turn % 2 : 0
    const one = plan.sides[index as 0 | 1]
    let end: string | undefined
    while (end === undefined) {
      if (asked[index] === one.maxSteps) {
        end = 'max_side_steps'
        break
      }
      // A script that is over begins again.
      const made = one.moves[asked[index]! % one.moves.length]!
      asked[index]!++
      end = endOfStep(one, made)
    }
    const isYield = end === 'stop_tool' || end === 'response'
    const isCapped = isYield && plan.isDual && turn + 1 === plan.maxSessionTurns
    turns.push(`${index === 0 ? 'a' : 'b'} ${isCapped ? 'max_session_turns' : end}`)
    if (end === 'session_stop' || (isYield && !plan.isDual))
      return { turns, asked, outcome: 'completed' }
    if (isCapped || !isYield) return { turns, asked, outcome: 'failed' }
  }
}

const tools = ['look', 'hand', 'finish', 'give_up'].map((name) => tool(name))

function setup(one: Side): SideSetup {
  return {
    script: (_, index) => {
      const { text, calls: made } = one.moves[index % one.moves.length]!
      const parts: ScriptPart[] = made.map((name) => calls(name, { say: name }))
      return text === undefined ? parts : [says(text), ...parts]
    },
    tools,
    stopOnResponse: one.stopOnResponse,
    maxSteps: one.maxSteps,
    ...(one.hasStopTool && { stopTool: 'hand' }),
    ...(one.stops && { sessionStop: { name: 'finish', messageProperty: 'say' } }),
    ...(one.fails && { sessionFail: 'give_up' }),
  }
}

test('turns, steps and the end of a session are those of the stop rules', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const predicted = predict(plan)
      const [a, b] = plan.sides.map(setup) as [SideSetup, SideSetup]
      const agent: AgentDefinition = plan.isDual
        ? pair('plan', { a, b }, { maxSessionTurns: plan.maxSessionTurns })
        : solo('plan', a)
      const it = await simulate({ agents: [agent] })
      const { id, outcome } = await it.ask('go')
      const starts = await it.events(id, 'turn_start')
      const ends = await it.events(id, 'turn_end')
      const turns = starts.map(
        ({ agentId }, index) => `${agentId.endsWith('/b') ? 'b' : 'a'} ${ends[index]?.reason}`,
      )
      const asked = [requestsOf(agent, 'a').length, plan.isDual ? requestsOf(agent, 'b').length : 0]
      expect({ turns, asked, outcome }).toEqual(predicted)
    }),
    runs(80),
  )
})

/** §1, §3 and §4: the members of a definition, and whether a value may be there. */
const isText = (value: unknown): boolean => typeof value === 'string'
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) > 0
const isBinding = (value: unknown): boolean =>
  value === 'look' ||
  (typeof value === 'object' && value !== null && (value as Json)['name'] === 'look')
const AGENT: Readonly<Record<string, (value: unknown) => boolean>> = {
  name: isText,
  type: (value) => value === 'ai_human' || value === 'dual_ai',
  maxSessionTurns: isCount,
  title: isText,
  description: isText,
  icon: isText,
  exposeAsTool: isFlag,
  toolDescription: isText,
  env: (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every(isText),
  hooks: (value) => Array.isArray(value),
}
const SIDE: Readonly<Record<string, (value: unknown) => boolean>> = {
  label: isText,
  stopOnResponse: isFlag,
  stopTool: (value) => value === 'look',
  stopToolResponseProperty: isText,
  maxSteps: isCount,
  sessionStop: isBinding,
  sessionFail: isBinding,
  sessionStatus: isBinding,
}

function definition(): Json {
  const side = (name: string): Json => ({
    prompt: definePrompt({ name, prompt: 'Be brief.', model: scripted([says('x')]), tools }),
    label: name,
    stopOnResponse: true,
    stopTool: 'look',
    stopToolResponseProperty: 'say',
    maxSteps: 4,
    sessionStop: { name: 'finish', messageProperty: 'say', attachmentsProperty: 'files' },
    sessionFail: 'give_up',
    sessionStatus: { name: 'hand', messageProperty: 'say' },
  })
  return {
    name: 'plan',
    type: 'dual_ai',
    maxSessionTurns: 4,
    title: 'Law',
    description: 'Two who agree.',
    icon: 'scales',
    exposeAsTool: true,
    toolDescription: 'Two who agree.',
    env: { A: 'b' },
    hooks: [],
    sideA: side('side_a'),
    sideB: side('side_b'),
  }
}

test('a definition is refused exactly when a required member is missing or one has the wrong type', () => {
  // An exposed agent needs a description, because a model cannot use a tool without one.
  const required = ['name', 'sideA', 'sideB', 'prompt', 'toolDescription']
  const values = [7.5, -1, true, [], { x: 1 }, null, 'drop'] as const
  const refused = new Set<string>()
  fc.assert(
    fc.property(
      fc.constantFrom<string[]>('agent', 'sideA', 'sideB'),
      fc.nat(),
      fc.constantFrom<(typeof values)[number][]>(...values),
      (where, pick, value) => {
        const table =
          where === 'agent'
            ? { ...AGENT, sideA: () => false, sideB: () => false }
            : { ...SIDE, prompt: () => false }
        const keys = Object.keys(table)
        const key = keys[pick % keys.length]!
        const path: Path = where === 'agent' ? [] : [where]
        const spoilt = definition()
        const place = (path.length === 0 ? spoilt : spoilt[where]) as Json
        if (value === 'drop') delete place[key]
        else place[key] = value
        // Without a type it is `ai_human`, whose side B is a person (§2.1).
        if (key === 'type' && value === 'drop') delete spoilt['sideB']
        const isRight =
          value === 'drop'
            ? !required.includes(key)
            : (table as Record<string, (one: unknown) => boolean>)[key]!(value)
        let error: unknown
        try {
          createRegistry({ agents: [spoilt as unknown as AgentDefinition] })
        } catch (thrown) {
          error = thrown
        }
        const what = `${where}.${key} = ${JSON.stringify(value)}`
        if (isRight) expect(error, what).toBeUndefined()
        else {
          expect(error, what).toBeInstanceOf(DefinitionError)
          refused.add(key)
        }
      },
    ),
    runs(400),
  )
  for (const key of [...Object.keys(AGENT), ...Object.keys(SIDE), ...required])
    expect(refused, key).toContain(key)
})
