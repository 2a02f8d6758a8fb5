/**
 * Properties of UAP 1.0: operations on states and thread trees, and runs of the loop and react strategies, are
 * generated and made twice: with `@skein/agents`, and with plain arrays as §5, §6, §7 and §12 describe them.
 *
 * Where the specification leaves a hole, the model reads it so: §7.2 stores states
 * that hold the whole history in the nodes, §7.3 adds up the messages of the nodes. So a node that shares messages with
 * those above it holds the whole history, and one that shares none adds its own.
 * After the last round that `maxIterations` of loop allows, the model is not asked again: the turn ends with results
 * (§5.2 "maximum tool execution rounds"; UPP's own loop asks once more).
 *
 * With SKEIN_DEEP it tries twenty times as many cases.
 */
import { agent, AgentState, type PlanStep, ThreadTree } from '@skein/agents'
import { loop, react } from '@skein/agents/execution'
import { AssistantMessage, type Message, tool, ToolResultMessage, UserMessage } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { changedAt, type Json, runs } from './support.ts'

const word = fc.string({
  unit: fc.constantFrom('a', 'é', '漢', ' ', '"'),
  minLength: 1,
  maxLength: 6,
})
const message: fc.Arbitrary<Message> = fc.oneof(
  word.map((text) => new UserMessage(text, { metadata: { acme: { kept: text } } })),
  word.map((text) => new AssistantMessage(text)),
  fc
    .uint8Array({ maxLength: 4 })
    .map((data) => new UserMessage([{ type: 'audio', data, mimeType: 'audio/x' }])),
  word.map((result) => new ToolResultMessage([{ toolCallId: 'c1', result }])),
)
const planSteps: fc.Arbitrary<PlanStep[]> = fc
  .array(
    fc.record({
      description: word,
      status: fc.constantFrom('pending', 'in_progress', 'completed', 'failed'),
    }),
    { maxLength: 3 },
  )
  .map(
    (steps) =>
      steps.map((step, index) => ({
        id: `s${index}`,
        dependsOn: index > 0 ? [`s${index - 1}`] : [],
        ...step,
      })) as PlanStep[],
  )

interface Model {
  messages: Message[]
  step: number
  metadata: Json
  reasoning: string[]
  plan: PlanStep[] | undefined
}
type Op = (state: AgentState, model: Model) => { state: AgentState; model: Model }
const op: fc.Arbitrary<Op> = fc.oneof(
  message.map((one): Op => (state, model) => ({
    state: state.withMessage(one),
    model: { ...model, messages: [...model.messages, one] },
  })),
  fc.array(message, { maxLength: 3 }).map((list): Op => (state, model) => ({
    state: state.withMessages(list),
    model: { ...model, messages: [...model.messages, ...list] },
  })),
  fc.array(message, { maxLength: 2 }).map((list): Op => (state, model) => ({
    state: state.withContext(list),
    model: { ...model, messages: list },
  })),
  fc.nat({ max: 99 }).map((step): Op => (state, model) => ({
    state: state.withStep(step),
    model: { ...model, step },
  })),
  fc
    .tuple(fc.constantFrom('a', 'b', '10'), fc.jsonValue({ maxDepth: 2, noUnicodeString: true }))
    .map(([key, value]): Op => (state, model) => ({
      state: state.withMetadata(key, value),
      model: { ...model, metadata: { ...model.metadata, [key]: value } },
    })),
  word.map((text): Op => (state, model) => ({
    state: state.withReasoning(text),
    model: { ...model, reasoning: [...model.reasoning, text] },
  })),
  planSteps.map((plan): Op => (state, model) => ({
    state: state.withPlan(plan),
    model: { ...model, plan },
  })),
)

function seen(state: AgentState): Model {
  return {
    messages: [...state.messages],
    step: state.step,
    metadata: { ...state.metadata },
    reasoning: [...state.reasoning],
    plan: state.plan && [...state.plan],
  }
}

test('states are values: each operation gives the new one, leaves the old one, and JSON gives it back', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), op), { maxLength: 10 }), (ops) => {
      const nothing: Model = { messages: [], step: 0, metadata: {}, reasoning: [], plan: undefined }
      const all = [{ state: AgentState.initial(), model: nothing }]
      // Each operation starts from any earlier state, so histories branch.
      for (const [from, act] of ops) {
        const { state, model } = all[from % all.length]!
        all.push(act(state, model))
      }
      for (const { state, model } of all) {
        expect(seen(state)).toEqual(model)
        const text = JSON.stringify(state)
        const back = AgentState.fromJSON(JSON.parse(text))
        expect(back.id).toBe(state.id)
        expect(seen(back)).toEqual(model)
        expect(JSON.stringify(back)).toBe(text)
      }
      expect(new Set(all.map(({ state }) => state.id)).size).toBe(all.length)
    }),
    runs(200),
  )
})

test('a state with a required member missing, of another type or of another version is refused', () => {
  const required = ['version', 'id', 'messages', 'step', 'metadata']
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 2 }),
      fc.constantFrom(...required, 'reasoning', 'plan', 'messages/0'),
      fc.constantFrom<unknown[]>('drop', 7.5, true, null, '9.0.0'),
      (list, key, value) => {
        const json = JSON.parse(
          JSON.stringify(AgentState.initial().withMessages(list).withReasoning('r').withPlan([])),
        ) as Json
        const isRequired = required.includes(key)
        if (value === 'drop' && !isRequired) return
        // The only text that may stand for an id is any text.
        if (key === 'id' && value === '9.0.0') return
        const path = key.includes('/') ? ['messages'] : []
        const spoilt = changedAt(json, path, (place) => {
          const member = key.includes('/') ? '0' : key
          if (value === 'drop') delete place[member]
          else place[member] = value
        })
        expect(() => AgentState.fromJSON(spoilt), `${key} ${String(value)}`).toThrow(
          expect.objectContaining({ code: expect.any(String) as string }),
        )
        const extended = { ...json, x_later: 1 }
        expect(AgentState.fromJSON(extended).messages).toHaveLength(list.length)
      },
    ),
    runs(200),
  )
})

test('a thread tree has the history from its root to its current node, also after JSON', () => {
  const act = fc.record({
    which: fc.constantFrom('say', 'say', 'branch', 'checkout'),
    at: fc.nat(),
    what: message,
  })
  fc.assert(
    fc.property(fc.array(act, { maxLength: 12 }), (acts) => {
      let tree = new ThreadTree()
      const nodes = new Map<
        string,
        { parent: string | null; messages: Message[]; children: string[] }
      >()
      nodes.set(tree.root.id, { parent: null, messages: [], children: [] })
      let current = tree.root.id
      const historyOf = (id: string): Message[] => {
        const { parent, messages } = nodes.get(id)!
        const above = parent === null ? [] : historyOf(parent)
        const isWhole = messages.some((one) => above.some((other) => other.id === one.id))
        return isWhole ? messages : [...above, ...messages]
      }
      for (const { which, at, what } of acts) {
        const picked = [...nodes.keys()][at % nodes.size]!
        if (which === 'say') {
          tree.current.state = tree.history().withMessage(what)
          nodes.get(current)!.messages = [...historyOf(current), what]
        } else if (which === 'branch') {
          const id = tree.branch(picked, 'a name')
          nodes.set(id, { parent: picked, messages: nodes.get(picked)!.messages, children: [] })
          nodes.get(picked)!.children.push(id)
        } else {
          tree.checkout(picked)
          current = picked
        }
        expect(tree.current.id).toBe(current)
        expect(tree.history().messages).toEqual(historyOf(current))
        tree = at % 3 === 0 ? ThreadTree.fromJSON(JSON.parse(JSON.stringify(tree))) : tree
      }
      expect([...tree.nodes.keys()].toSorted()).toEqual([...nodes.keys()].toSorted())
      for (const [id, node] of nodes) {
        expect(tree.nodes.get(id)!.parentId ?? null).toBe(node.parent)
        expect(tree.nodes.get(id)!.children).toEqual(node.children)
      }
      expect(() => tree.checkout('nowhere')).toThrow(
        expect.objectContaining({ code: expect.any(String) as string }),
      )
      expect(() => tree.branch('nowhere')).toThrow(
        expect.objectContaining({ code: expect.any(String) as string }),
      )
      const json = JSON.parse(JSON.stringify(tree)) as Json
      expect(() => ThreadTree.fromJSON({ ...json, currentId: 'nowhere' })).toThrow(
        expect.objectContaining({ code: expect.any(String) as string }),
      )
    }),
    runs(150),
  )
})

interface Round {
  readonly text: string
  readonly calls: readonly number[]
}
interface Plan {
  readonly strategy: 'loop' | 'react'
  readonly limit: number | undefined
  readonly stopAfter: number | undefined
  readonly rounds: readonly Round[]
  readonly history: readonly string[]
}
const plans: fc.Arbitrary<Plan> = fc.record({
  strategy: fc.constantFrom('loop', 'react'),
  limit: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  stopAfter: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  rounds: fc.array(
    fc.record({ text: word, calls: fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 2 }) }),
    { maxLength: 4 },
  ),
  history: fc.array(word, { maxLength: 2 }),
})

/** The step lifecycle of §5.3: what the hooks receive, in order. */
function predictReact(plan: Plan): string[] {
  const told: string[] = []
  const rounds: Round[] = [...plan.rounds, { text: 'done', calls: [] }]
  for (let step = 1; ; step++) {
    const { calls: made } = rounds[step - 1]!
    told.push(`start ${step}`, `reason ${step} because ${step}`)
    if (made.length > 0)
      told.push(`act ${step} ${made.join()}`, `observe ${step} ${made.map((n) => n + 1).join()}`)
    told.push(`end ${step}`, `stop? ${step}`)
    if (step === plan.stopAfter || made.length === 0 || step === plan.limit) return told
  }
}

test('react runs its steps and hooks as the pseudocode of §5.3 does; loop ends where §5.2 says', async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const told: string[] = []
      let steps = 0
      const rounds: Round[] = [...plan.rounds, { text: 'done', calls: [] }]
      const answers = rounds.map(({ text, calls: made }) => [
        says(text),
        ...made.map((n) => calls('add', { n })),
      ])
      const script =
        plan.strategy === 'react'
          ? answers.flatMap((answer, index) => [[says(`because ${index + 1}`)], answer])
          : answers
      const add = tool({
        name: 'add',
        description: 'Adds one.',
        parameters: { type: 'object', properties: { n: { type: 'integer' } } },
        run: (({ n }: { n: number }) => n + 1) as never,
      })
      const { limit } = plan
      const runner = agent({
        model: scripted(script),
        tools: [add],
        execution:
          plan.strategy === 'react'
            ? react(limit === undefined ? {} : { maxSteps: limit })
            : loop(limit === undefined ? {} : { maxIterations: limit }),
        strategy: {
          onStepStart: (step) => void told.push(`start ${step}`),
          onReason: (step, text) => void told.push(`reason ${step} ${text}`),
          onAct: (step, made) =>
            void told.push(`act ${step} ${made.map((call) => call.arguments['n']).join()}`),
          onObserve: (step, done) =>
            void told.push(`observe ${step} ${done.map(({ result }) => result).join()}`),
          onStepEnd: (step) => {
            told.push(`end ${step}`)
            steps = step
          },
          ...(plan.strategy === 'react' && {
            stopCondition: () => {
              told.push(`stop? ${steps}`)
              return steps === plan.stopAfter
            },
          }),
        },
      })
      const before = AgentState.initial().withMessages(
        plan.history.map((text) => new UserMessage(text)),
      )
      const kept = JSON.stringify(before)
      const { turn, state } = await runner.generate('go', before)
      // §2.2: a pure function of input and state; the new state is the old one and the turn.
      expect(JSON.stringify(before)).toBe(kept)
      expect(state.id).not.toBe(before.id)
      expect(state.messages.slice(0, plan.history.length).map(({ id }) => id)).toEqual(
        before.messages.map(({ id }) => id),
      )
      expect(state.messages.at(plan.history.length)!.text).toBe('go')
      expect(state.messages.at(-1)!.id).toBe(turn.messages.at(-1)!.id)
      if (plan.strategy === 'react') {
        const predicted = predictReact(plan)
        expect(told).toEqual(predicted)
        expect(state.step).toBe(predicted.filter((one) => one.startsWith('end')).length)
        expect(state.reasoning).toEqual(
          Array.from({ length: state.step }, (_, index) => `because ${index + 1}`),
        )
      } else {
        const done = Math.min(plan.limit ?? Infinity, plan.rounds.length)
        const executed = plan.rounds.slice(0, done).flatMap((round) => round.calls)
        expect(turn.toolExecutions.map(({ result }) => result)).toEqual(executed.map((n) => n + 1))
        const last = done === plan.limit ? done - 1 : done
        expect(turn.response.text).toBe(rounds[last]!.text)
      }
    }),
    runs(150),
  )
})
