/** Hooks that are methods of a class: each is called on its own object, with its private fields. */
import { agent, AgentState, type AgentStrategy, type ExecutionStrategy } from '@skein/agents'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import { loop, plan, react } from '@skein/agents/execution'
import { isToolResultMessage } from '@skein/ai'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { add } from './support/tools.ts'

const start = AgentState.initial()

class Noting implements AgentStrategy {
  readonly #seen = new Set<string>()
  get seen(): string[] {
    return [...this.#seen].toSorted()
  }
  stopCondition(): boolean {
    this.#seen.add('stopCondition')
    return false
  }
  onStepStart(): void {
    this.#seen.add('onStepStart')
  }
  onReason(): void {
    this.#seen.add('onReason')
  }
  onInference(): void {
    this.#seen.add('onInference')
  }
  onAct(): void {
    this.#seen.add('onAct')
  }
  onObserve(): void {
    this.#seen.add('onObserve')
  }
  onStepEnd(): void {
    this.#seen.add('onStepEnd')
  }
  onComplete(): void {
    this.#seen.add('onComplete')
  }
  onError(): void {
    this.#seen.add('onError')
  }
}

const steps = ['onStepEnd', 'onStepStart']
const inferences = [...steps, 'onAct', 'onInference', 'onObserve', 'stopCondition']
const cases: [ExecutionStrategy, hooks: readonly string[]][] = [
  [loop(), inferences],
  [react(), [...inferences, 'onReason']],
  [plan(), inferences],
  [custom(), steps],
]

test.each(cases.map(([execution, hooks]) => ({ name: execution.name, execution, hooks })))(
  'UAP-138 UAP-139 UAP-140 all hooks that $name calls, with and without a store',
  async ({ execution, hooks }) => {
    for (const checkpoints of [
      undefined,
      memoryCheckpoints(),
      memoryCheckpoints({ journal: true }),
    ])
      for (const form of ['generate', 'stream'] as const) {
        const strategy = new Noting()
        const model = scripted(({ structure, tools, messages }) => {
          if (structure) return says('{"steps":[]}')
          if (tools.length === 0 || messages.some(isToolResultMessage)) return says('done')
          return calls('add', { a: 1, b: 1 })
        })
        const worker = agent({ model, tools: [add], execution, strategy, checkpoints })
        const running = worker[form]('x', start)
        const { turn } = await ('result' in running ? running.result : running)
        expect(turn.response.text).toBe('done')
        expect(strategy.seen).toEqual([...hooks, 'onComplete'].toSorted())
      }
  },
)

test.each(cases.map(([execution]) => execution))(
  'UAP-141 onError after a failure of $name',
  async (execution) => {
    for (const checkpoints of [undefined, memoryCheckpoints()]) {
      const strategy = new Noting()
      const worker = agent({ model: scripted([fails('down')]), execution, strategy, checkpoints })
      await expect(worker.generate('x', start)).rejects.toMatchObject({ message: 'down' })
      expect(strategy.seen).toContain('onError')
    }
  },
)
