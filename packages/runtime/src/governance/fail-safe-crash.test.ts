import { expect, test } from 'vitest'
import { z } from 'zod'
import { calls, scripted, says } from '@skein/ai/testing'
import {
  type AgentDefinition,
  asSubagent,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  verifyAudit,
} from '../index.ts'
import { Machine } from '../../test/api/machine.ts'

/** When the process dies. */
interface Death {
  /** The number of the commit, counted from the judgement of the answer, at which the process dies. */
  readonly commit?: number
  readonly isAfter?: boolean
  /** The number of the rollback after which the process dies. */
  readonly rollback?: number
}

/** A parent and a child write in turn; then the parent fails safe, and the process dies once. */
async function crash({ commit, isAfter, rollback }: Death, hasProbe: boolean) {
  const machine = new Machine()
  const world: string[] = []
  let commits = 0
  let rollbacks = 0
  const unwrite = defineTool({
    name: 'unwrite',
    description: 'Undoes.',
    args: z.object({ n: z.string() }),
    risk: 'write_low_risk',
    execute: (_state, { n }) => {
      world.push(`undo ${n}`)
      return rollbacks++ === rollback ? machine.kill() : undefined
    },
  })
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    args: z.object({ n: z.string() }),
    risk: 'write_low_risk',
    rollback: { tool: 'unwrite', args: (args) => args },
    ...(hasProbe && {
      probe: ({ n }: { n: string }) => world.includes(n) && !world.includes(`undo ${n}`),
    }),
    execute: (_state, { n }) => void world.push(n),
  })
  const read = defineTool({
    name: 'read',
    description: 'Reads.',
    args: z.object({}),
    risk: 'read_only',
    execute: () => 'facts',
  })
  /** A model that answers from the history, so that a process which is started again continues. */
  const modelOf = (steps: readonly ReturnType<typeof calls>[]) =>
    scripted(
      ({ messages }) =>
        steps[messages.filter(({ type }) => type === 'assistant').length] ?? says('A claim.'),
    )
  const agents = (): readonly AgentDefinition[] => {
    const own = modelOf([calls('write', { n: 'c1' }), calls('write', { n: 'c2' })])
    const below = definePrompt({ name: 'child', prompt: 'C.', model: own, tools: [write] })
    const child = asSubagent(
      defineAgent({ name: 'child', description: 'Writes.', sideA: { prompt: below } }),
    )
    const steps = [calls('write', { n: 'p1' }), calls('child', { message: 'go' })]
    const model = modelOf([...steps, calls('write', { n: 'p2' })])
    const tools = [read, write, { name: child, blocking: true }]
    const prompt = definePrompt({ name: 'parent', prompt: 'P.', model, tools })
    const needs = [{ type: 'tool_result', source: 'read' }] as const
    const taskClass = { name: 'proven', needs, verifiers: [] }
    return [{ ...defineAgent({ name: 'parent', sideA: { prompt } }), taskClass }]
  }
  const { store } = machine
  const counted = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const bound = (member as (...args: unknown[]) => unknown).bind(target)
      if (name !== 'commit') return bound
      return async (...args: unknown[]) => {
        const isLate = world.includes('p2')
        const isHere = isLate && commits++ === commit
        if (isHere && !isAfter) return machine.kill()
        const result = await bound(...args)
        return isHere ? machine.kill() : result
      }
    },
  })
  Object.assign(machine, { store: counted })
  const boot = (): Promise<EmbeddedRuntime> => machine.boot({ agents: agents(), tools: [unwrite] })
  let runtime = await boot()
  const { id } = await runtime.threads.create({ agent: 'parent' })
  await runtime.threads.send(id, 'go')
  let isDead = false
  for (let lives = 0; lives < 5; lives++) {
    if ((await machine.run(30_000)) === 'alive') break
    isDead = true
    commits = Number.NEGATIVE_INFINITY
    runtime = await boot()
  }
  const { lifecycle } = await runtime.threads.get(id)
  const events = (await runtime.threads.events(id)).map(({ event }) => event)
  const end = events.findLast((event) => event.type === 'session_end')
  const waiting = await runtime.inbox.list()
  const audit = await runtime.threads.audit(id)
  const { ok } = await verifyAudit(audit, { keys: [audit.publicKey] })
  return { world, isDead, lifecycle, text: end?.message ?? '', waiting, ok }
}

const writes = ['p1', 'c1', 'c2', 'p2']
const undone = ['undo p2', 'undo c2', 'undo c1', 'undo p1']

test.each([true, false])(
  'UAICP-26 a crash at every moment of the undoing of a tree: it continues in order, and undoes nothing twice (probe: %s)',
  async (hasProbe) => {
    const deaths: Death[] = [0, 1, 2, 3].map((rollback) => ({ rollback }))
    for (let commit = 0; commit < 14; commit++)
      deaths.push({ commit, isAfter: false }, { commit, isAfter: true })
    let died = 0
    for (const death of deaths) {
      const { world, isDead, lifecycle, text, waiting, ok } = await crash(death, hasProbe)
      const where = `${JSON.stringify(death)}: ${world.join(', ')}; ${text}`
      if (isDead) died++
      expect(lifecycle, where).toBe('failed')
      expect(ok, where).toBe(true)
      expect(world.slice(0, 4), where).toEqual(writes)
      const made = world.slice(4)
      expect(new Set(made).size, where).toBe(made.length)
      expect(made, where).toEqual(undone.filter((one) => made.includes(one)))
      if (hasProbe) expect(made, where).toEqual(undone)
      // What the result says of each write is what happened; of those that it does not know, a person is asked.
      const unknown = text.match(/it is unknown whether/g)?.length ?? 0
      expect(text.match(/: undone\./g)?.length ?? 0, where).toBeGreaterThanOrEqual(4 - unknown)
      expect(waiting.length, where).toBe(unknown)
      expect(made.length, where).toBeGreaterThanOrEqual(4 - unknown)
      expect(unknown, where).toBeLessThanOrEqual(hasProbe ? 0 : 1)
    }
    // Fewer would mean that some moment was left out.
    expect(died).toBeGreaterThan(20)
  },
)
