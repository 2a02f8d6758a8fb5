import { agent, AgentState, type ExecutionStrategy, type GenerateResult } from '@skein/agents'
import { type CheckpointStore, fileCheckpoints } from '@skein/agents/checkpoint'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptFunction, type ScriptedModel } from '@skein/ai/testing'

/** A job: how many calls each round has. The model's answers depend on the history alone. */
export type Job = readonly number[]

export interface Mortal {
  readonly dir: string
  readonly job: Job
  readonly execution: ExecutionStrategy
  readonly script: ScriptFunction
  readonly isJournalled: boolean
  /** One call at a time: then no effect can be under way when the process dies. */
  readonly isSequential: boolean
  /** What the tool did: call and idempotency key. */
  readonly effects: string[]
}

/** Rounds of calls, then an answer; told by the number of results in the history. */
export function jobScript(job: Job): ScriptFunction {
  return ({ messages }) => {
    const round = messages.filter(({ type }) => type === 'tool_result').length
    const count = job[round]
    if (count === undefined) return says(`All ${job.length} rounds are done.`)
    return Array.from({ length: count }, (_, index) => calls('act', { round, index }))
  }
}

/**
 * One life of a process: begins or resumes the session and works until it is done or dies, which is
 * right after the given number of things that reached the disk. Nothing happens after death.
 */
export async function live(mortal: Mortal, diesAfter: number): Promise<GenerateResult | undefined> {
  const { dir, execution, isJournalled, isSequential } = mortal
  const files = fileCheckpoints({ dir, fsync: false, journal: isJournalled })
  const controller = new AbortController()
  let left = diesAfter
  let die = (): void => {}
  const death = new Promise<undefined>((resolve) => (die = () => resolve(undefined)))
  const never = new Promise<never>(() => {})
  const isDead = (): boolean => left <= 0

  /** After the last write the process is gone: a caller that waits for it waits for ever. */
  const once = async (write: () => Promise<unknown>): Promise<void> => {
    if (isDead()) return never
    await write()
    left--
    if (!isDead()) return
    die()
    return never
  }
  const store: CheckpointStore = {
    ...files,
    save: (id, state) => once(() => files.save(id, state)),
    ...(files.record && { record: (id, entry) => once(() => files.record!(id, entry)) }),
  }
  const act: Tool = {
    name: 'act',
    description: 'Does something that must not be done twice.',
    parameters: { type: 'object' },
    run: async (args: object, { idempotencyKey }: { idempotencyKey: string }) => {
      await Promise.resolve()
      if (isDead()) return never
      mortal.effects.push(`${JSON.stringify(args)} ${idempotencyKey}`)
      return { done: args }
    },
  }
  const model: ScriptedModel = scripted((request, index) =>
    isDead() ? never : mortal.script(request, index),
  )
  const worker = agent({
    model,
    tools: [act],
    execution,
    checkpoints: store,
    sessionId: 'job',
    ...(isSequential && { toolStrategy: { maxConcurrency: 1 } }),
  })
  const saved = await files.load('job')
  const { signal } = controller
  const run = saved
    ? worker.resume(AgentState.fromJSON(saved), {}, { signal })
    : worker.generate('do it', AgentState.initial(), { signal })
  const result = await Promise.race([run, death])
  if (result) await Promise.race([worker.flush(), death])
  else run.catch(() => {}) // it is dead; only its memory is still here
  controller.abort()
  return result
}
