import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { isUPPError, llm, type Tool, type Turn, withToolContext } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { agent } from '../agent.ts'
import { AgentState } from '../state/state.ts'

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

type Write = Pick<Tool, 'risk' | 'idempotent'> & {
  readonly ms: number
  readonly obeys?: boolean
}

/**
 * Runs a model that calls `write` and then `next`, one after the other, and aborts while `write` runs. Returns the turn
 * of the error, and what has happened outside.
 */
async function abortedInWrite(
  kind: 'llm' | 'agent' | 'stream',
  { ms, obeys = false, ...declared }: Write,
) {
  const world: string[] = []
  const controller = new AbortController()
  const { signal } = controller
  const write = {
    name: 'write',
    description: 'Writes.',
    parameters: { type: 'object', properties: {} },
    sequential: true,
    ...declared,
    run: async (_: unknown, context: { signal: AbortSignal }) => {
      setTimeout(() => controller.abort(), 10)
      await (obeys ? sleep(ms, undefined, context) : later(ms))
      world.push('write')
      return 'written'
    },
  }
  const next = { ...write, name: 'next', run: () => void world.push('next') }
  const tools = [write, next] as unknown as Tool[]
  const options = {
    model: scripted([[calls('write', {}), calls('next', {})], says('Done.')]),
    tools: tools.map((one) => withToolContext(one)), // otherwise a plain tool gets no signal
    toolStrategy: { stopGraceMs: 60 },
  }
  const startedAt = performance.now()
  const run = async (): Promise<unknown> => {
    if (kind === 'agent') return agent(options).generate('go', AgentState.initial(), { signal })
    const model = llm({ ...options, signal })
    if (kind === 'llm') return model.generate('go')
    const stream = model.stream('go')
    for await (const _ of stream);
    return stream.turn
  }
  const error = await run().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const took = performance.now() - startedAt
  if (!isUPPError(error) || error.code !== 'CANCELLED') throw error
  await later(100)
  const turn = error.turn as Turn
  const [first, second] = turn.toolExecutions
  return { world, first, second, took, turn }
}

const notRun = {
  toolName: 'next',
  isError: true,
  result: 'The run was aborted before this call ran. It was not run.',
}

for (const kind of ['llm', 'stream', 'agent'] as const)
  describe(`an abort of ${kind} while a write runs`, () => {
    test('keeps the result of a write that ends within its grace; the next call was not run', async () => {
      const { world, first, second, turn } = await abortedInWrite(kind, {
        ms: 40,
        risk: 'write_low_risk',
      })
      expect(first).toMatchObject({ toolName: 'write', result: 'written', isError: false })
      expect(second).toMatchObject(notRun)
      expect(world).toEqual(['write'])
      expect(turn.openCalls).toEqual([])
      expect(turn.messages.at(-1)).toMatchObject({ type: 'tool_result' })
    })

    test('says that the outcome of a write is unknown that does not end in time', async () => {
      const { world, first, second } = await abortedInWrite(kind, {
        ms: 150,
        risk: 'write_high_risk',
      })
      expect(first).toMatchObject({
        toolName: 'write',
        isUnknown: true,
        result: expect.stringContaining('find out before you call it again'),
      })
      expect(second).toMatchObject(notRun)
      expect(world).toEqual(['write'])
    })

    test('says the same of a write that obeys its signal, because it may have done a part', async () => {
      const { first, took } = await abortedInWrite(kind, {
        ms: 5_000,
        obeys: true,
        risk: 'write_low_risk',
      })
      expect(first).toMatchObject({ toolName: 'write', isUnknown: true })
      expect(took).toBeLessThan(1_000)
    })

    test('does not wait for a tool that declares no risk, nor for one that may run again', async () => {
      const plain = await abortedInWrite(kind, { ms: 3_000 })
      expect(plain.took).toBeLessThan(1_000)
      expect(plain.first).toMatchObject({ toolName: 'write', isUnknown: true })
      const idempotent = await abortedInWrite(kind, { ms: 3_000, idempotent: true })
      expect(idempotent.took).toBeLessThan(1_000)
      expect(idempotent.first).toMatchObject({ isError: true })
      expect(idempotent.first).not.toHaveProperty('isUnknown')
    })
  })
