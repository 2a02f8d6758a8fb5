import { manualClock, type ManualClock } from '@skein/base'
import { createProvider, type LLMRequest, type ModelReference } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryStore,
  type AgentDefinition,
  type EmbeddedRuntime,
  type RuntimeEvent,
  type RuntimeOptions,
  type Store,
  type ToolDefinition,
} from '@skein/runtime'
import { manualTimers, type ManualTimers } from '@skein/runtime/testing'

/** A machine on which processes run, one after the other, on one store. Time is virtual. */
export class Machine {
  readonly clock: ManualClock = manualClock(Date.UTC(2026, 0, 1))
  readonly store: Store = memoryStore({ clock: this.clock })
  readonly errors: unknown[] = []
  /** What a test puts between the processes and the store. */
  between: (store: Store) => Store = (store) => store
  #life = { isDead: false }
  /** Of the process that runs now. */
  timers: ManualTimers = manualTimers(this.clock)

  /** A process that has just been started. */
  async boot(options: Partial<RuntimeOptions>): Promise<EmbeddedRuntime> {
    const life = { isDead: false }
    this.#life = life
    const timers = manualTimers(this.clock)
    this.timers = timers
    const runtime = await createRuntime({
      store: mortal(this.between(this.store), life),
      clock: this.clock,
      timers,
      onError: (error) => void this.errors.push(error),
      ...options,
    })
    await runtime.start()
    return runtime
  }

  /** Ends the process that runs now: nothing of it happens any more. */
  readonly kill = (): Promise<never> => {
    this.#life.isDead = true
    return new Promise(() => {})
  }

  /** Resolves after a time of the process that runs now, or when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { timers } = this
    return new Promise((resolve) => {
      const handle = timers.set(ms, resolve)
      signal?.addEventListener('abort', () => {
        timers.clear(handle)
        resolve()
      })
    })
  }

  /** Lets time pass until the process dies, or until `ms` have passed. */
  async run(ms: number): Promise<'died' | 'alive'> {
    for (let passed = 0; passed < ms && !this.#life.isDead; passed += 100)
      await this.timers.advance(100)
    if (!this.#life.isDead) return 'alive'
    this.clock.advance(60_000) // whoever comes next finds that the leases have ended
    return 'died'
  }
}

/** The store as one process sees it: after the death of the process nothing arrives any more. */
function mortal(store: Store, life: { isDead: boolean }): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...given: unknown[]) =>
        life.isDead ? new Promise(() => {}) : (member.apply(target, given) as unknown)
    },
  })
}

/** An agent with one side. */
export function agentOf(
  name: string,
  model: ModelReference,
  tools: readonly ToolDefinition[] = [],
): AgentDefinition {
  const prompt = definePrompt({ name, prompt: 'Hi.', model, tools })
  return defineAgent({ name, sideA: { prompt } })
}

/** A model that answers after a time by the timers of the process that asks. */
export function slowly(machine: Machine, ms: number, text: string): ModelReference {
  const inner = scripted(() => says(text))
  const bound = inner.provider.handlers.llm!.bind(inner)
  async function* stream(request: LLMRequest) {
    await machine.sleep(ms, request.signal)
    if (request.signal.aborted) throw request.signal.reason
    yield* bound.stream(request)
  }
  const { capabilities } = bound
  const provider = createProvider({
    name: 'slow',
    llm: {
      capabilities,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'slow',
        capabilities,
        stream,
        async complete(request) {
          const events = []
          for await (const batch of stream(request)) events.push(...batch)
          return events
        },
      }),
    },
  })
  return provider('slow')
}

/** A tool that ends the process in which it runs. */
export function killer(
  kill: () => Promise<unknown>,
  onRun: () => void = () => {},
): AgentDefinition {
  const crash = defineTool({
    name: 'crash',
    description: 'Ends the process.',
    risk: 'read_only',
    execute: () => {
      onRun()
      return kill()
    },
  })
  return agentOf(
    'killer',
    scripted(() => calls('crash', {})),
    [crash],
  )
}

export async function logOf(store: Store, id: string): Promise<readonly RuntimeEvent[]> {
  return (await store.events(id)).map(({ event }) => event)
}
