import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defer, tool, withToolContext, type Tool } from '@skein/ai'
import { DefinitionError } from './definition-error.ts'
import { defineAgent } from './define-agent.ts'
import { definePrompt } from './define.ts'
import { defineTool, toolFrom } from './define-tool.ts'
import type { RuntimeToolContext } from './tool-definition.ts'
import type { ThreadState } from '../contract/thread-state.ts'

const state = { threadId: 't1' } as ThreadState
const context: RuntimeToolContext = {
  state,
  signal: new AbortController().signal,
  toolCallId: 'call-1',
  toolName: 'refund',
  idempotencyKey: 'k1',
}
const base = { name: 'refund', description: 'Refunds.', risk: 'write_low_risk' } as const
const args = z.object({ order: z.string(), cents: z.coerce.number().default(5) })

describe('defineTool', () => {
  test('describes its arguments and checks them before it runs', async () => {
    const refund = defineTool({
      ...base,
      args,
      execute: (thread, { order, cents }, { idempotencyKey }) =>
        `${thread.threadId} ${order} ${cents.toFixed(2)} ${idempotencyKey}`,
    })
    expect(refund).toMatchObject({ kind: 'tool', name: 'refund', description: 'Refunds.' })
    expect(refund.parameters).toMatchObject({ type: 'object', required: ['order'] })
    expect(await refund.run?.({ order: 'a', cents: '7' }, context)).toBe('t1 a 7.00 k1')
    expect(await refund.run?.({ order: 'a' }, context)).toBe('t1 a 5.00 k1')
    await expect(refund.run?.({ order: 7 }, context)).rejects.toMatchObject({
      code: 'TOOL_ARGUMENTS_INVALID',
      message: expect.stringContaining('order'),
    })
  })

  test('a callback that throws at once is a rejection', async () => {
    const broken = defineTool({
      ...base,
      execute: () => {
        throw new Error('no')
      },
    })
    await expect(broken.run?.({}, context)).rejects.toThrow('no')
  })

  test('without a schema there are no arguments, whatever is sent', async () => {
    const seen: unknown[] = []
    const ping = defineTool({ ...base, execute: (_state, given) => seen.push(given) })
    expect(ping.parameters).toEqual({ type: 'object', properties: {}, additionalProperties: false })
    await ping.run?.({ sneaky: 1 }, context)
    expect(seen).toEqual([{}])
  })

  test('without execute it runs at the client', () => {
    expect(defineTool({ ...base, args })).not.toHaveProperty('run')
  })

  test('governance has the callbacks as they were given: it calls them with parsed arguments', () => {
    const callbacks = {
      raise: () => 'write_low_risk' as const,
      rollback: { tool: 'charge', args: () => ({}) },
      probe: () => true,
      evidence: () => ({ type: 'tool_result' as const, payload: null }),
    }
    const refund = defineTool({
      ...base,
      args,
      idempotent: true,
      timeoutMs: 50,
      ...callbacks,
      execute: () => 'done',
    })
    expect(refund).toMatchObject({ timeoutMs: 50, governance: { idempotent: true, timeoutMs: 50 } })
    expect(refund.governance).toMatchObject(callbacks)
  })

  test('only what was given is there', () => {
    expect(Object.keys(defineTool({ ...base }).governance)).toEqual(['risk'])
  })

  test.each([7, 'text', { type: 'object' }, z.object({ at: z.date() })])(
    'arguments that cannot be described are an error that names the tool (%#)',
    (given) => {
      const define = () => defineTool({ ...base, args: given as never })
      expect(define).toThrow(DefinitionError)
      expect(define).toThrow('tool "refund": args: ')
    },
  )
})

describe('toolFrom', () => {
  test('runs any tool of UPP, with the context where it is wanted', async () => {
    const typed = tool({ ...base, parameters: args, run: ({ cents }) => cents })
    expect(await toolFrom(typed, { risk: 'read_only' }).run?.({ order: 'a' }, context)).toBe(5)
    const seen: unknown[][] = []
    const plain: Tool = {
      ...base,
      parameters: { type: 'object' },
      run: (...given: unknown[]) => seen.push(given),
    }
    await toolFrom(plain, { risk: 'read_only' }).run?.({ a: 1 }, context)
    await toolFrom(withToolContext(plain), { risk: 'read_only' }).run?.({ a: 2 }, context)
    expect(seen).toEqual([[{ a: 1 }], [{ a: 2 }, context]])
  })

  test('carries name, schema, risk and limits', () => {
    const made = toolFrom(
      { ...base, parameters: { type: 'object' }, run: () => 1, timeoutMs: 9 },
      { risk: 'write_high_risk', rollback: 'impossible', idempotent: true, uses: ['other'] },
    )
    expect(made).toMatchObject({
      kind: 'tool',
      name: 'refund',
      parameters: { type: 'object' },
      governance: { risk: 'write_high_risk', idempotent: true, timeoutMs: 9 },
      timeoutMs: 9,
      uses: ['other'],
    })
  })

  test.each([
    ['denies', false],
    ['defers', defer({ kind: 'approval', request: {} })],
  ])('an approval that %s keeps the tool from running', async (_word, verdict) => {
    let runs = 0
    const guarded: Tool = {
      ...base,
      parameters: {},
      approval: () => verdict,
      run: () => (runs += 1),
    }
    const made = toolFrom(guarded, { risk: 'read_only' })
    await expect(made.run?.({}, context)).rejects.toMatchObject({ code: 'TOOL_NOT_ALLOWED' })
    expect(runs).toBe(0)
  })
})

test('definitions are frozen, and cut off from what they were made of', () => {
  const env = { A: '1' }
  const tools: string[] = ['x']
  const schema = z.object({ a: z.string() })
  const prompt = definePrompt({
    name: 'p',
    prompt: '',
    model: {} as never,
    env,
    tools,
    output: schema,
  })
  const agent = defineAgent({ name: 'a', sideA: { prompt, sessionStop: { name: 'x' } } })
  env.A = '2'
  tools.push('y')
  expect(prompt).toMatchObject({ env: { A: '1' }, tools: ['x'] })
  const parts = [prompt, prompt.env, prompt.tools, agent, agent.sideA, agent.sideA.sessionStop]
  for (const part of parts) expect(Object.isFrozen(part)).toBe(true)
  expect(prompt.output).toBe(schema)
  expect(Object.isFrozen(schema)).toBe(false)
  expect(agent.sideA.prompt).toBe(prompt)
  expect(Object.keys(agent)).toEqual(['name', 'sideA'])
})
