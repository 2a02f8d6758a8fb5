import { existsSync, readFileSync } from 'node:fs'
import { agent, AgentState } from '@skein/agents'
import * as execution from '@skein/agents/execution'
import { publicNames } from '../../scripts/source/public-names.ts'
import * as ai from '@skein/ai'
import {
  AssistantMessage,
  isUPPError,
  messageFromJSON,
  ToolResultMessage,
  UPPError,
  UserMessage,
  type ToolUseStrategy,
} from '@skein/ai'
import { calls, fails, says, scripted, stops } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { add } from './support/tools.ts'

const packageFile = new URL('../../packages/agents/package.json', import.meta.url)

test('UAP-001 what flows through an agent are the classes and errors of @skein/ai themselves', async () => {
  const seen: unknown[] = []
  const result = await agent({
    model: scripted([says('hi')]),
    middleware: [{ name: 'look', before: ({ input }) => void seen.push(input) }],
  }).generate('hello', AgentState.initial())
  expect(seen[0]).toBeInstanceOf(UserMessage)
  expect(result.turn.response).toBeInstanceOf(AssistantMessage)
  expect(result.state.messages[0]).toBe(seen[0])
  const failing = agent({ model: scripted([fails({ code: 'RATE_LIMITED' })]) })
  const error: unknown = await failing.generate('x', AgentState.initial()).catch((e: unknown) => e)
  expect(error).toBeInstanceOf(UPPError)
  expect(isUPPError(error) && error.code).toBe('RATE_LIMITED')
})

test('UAP-002 UAP-144 every hook of the tool strategy is called by the layer of the model', async () => {
  const log: string[] = []
  const toolStrategy: ToolUseStrategy = {
    maxIterations: 2,
    onToolCall: (tool, params) => void log.push(`call ${tool.name} ${JSON.stringify(params)}`),
    onBeforeCall: () => void log.push('before'),
    onAfterCall: (_, __, result) => void log.push(`after ${String(result)}`),
    onError: (_, __, error) => void log.push(`error ${error.message}`),
    onMaxIterations: (count) => void log.push(`max ${count}`),
  }
  const broken = { ...add, name: 'broken', run: () => Promise.reject(new Error('no')) }
  const model = scripted([
    calls('add', { a: 1, b: 2 }),
    calls('broken'),
    calls('add', { a: 0, b: 0 }),
  ])
  const worker = agent({ model, tools: [add, broken], toolStrategy })
  const { stopReason, turn } = await worker.generate('x', AgentState.initial())
  expect(log).toEqual([
    'call add {"a":1,"b":2}',
    'before',
    'after 3',
    'call broken {}',
    'before',
    'error no',
    'max 2',
  ])
  expect(stopReason).toBe('max_iterations')
  expect(turn.openCalls).toHaveLength(1)
})

test('UAP-003 no entry gives out a name of @skein/ai', async () => {
  const { exports } = JSON.parse(readFileSync(packageFile, 'utf8')) as {
    exports: Record<string, Record<string, unknown> | string>
  }
  const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
  expect(entries.length).toBeGreaterThanOrEqual(6)
  for (const entry of entries) {
    const names = (await import(`@skein/agents${entry.slice(1)}`)) as Record<string, unknown>
    const shared = Object.keys(names).filter((key) => key in ai && key !== 'logging')
    expect(shared, entry).toEqual([])
    for (const [key, given] of Object.entries(names))
      expect(Object.values(ai).includes(given as never), `${entry}.${key}`).toBe(false)
  }
  // Types too, also through `export *`.
  const own = publicNames().filter((name) => name.package === '@skein/agents')
  expect(own.length).toBeGreaterThan(50)
  expect(own.filter(({ declaredIn }) => declaredIn.includes('@skein/ai'))).toEqual([])
  expect(own.filter(({ declaredIn }) => !declaredIn.startsWith('packages/agents/'))).toEqual([])
})

test('UAP-005 UAP-006 the package has a name and an entry for each part, and the main one needs no file system', async () => {
  const { name, exports } = JSON.parse(readFileSync(packageFile, 'utf8')) as {
    name: string
    exports: Record<string, unknown>
  }
  expect(name).toBe('@skein/agents')
  expect(Object.keys(exports)).toEqual(
    expect.arrayContaining(['.', './execution', './middleware', './checkpoint']),
  )
  const seen = new Set<string>()
  const visit = (file: URL): void => {
    if (seen.has(file.href) || !existsSync(file)) return
    seen.add(file.href)
    const text = readFileSync(file, 'utf8')
    expect(text, file.pathname).not.toMatch(/from 'node:|-node\.ts'/)
    for (const [, path] of text.matchAll(/^(?:import|export) (?!type)[^;]*?from '(\.[^']+)'/gms))
      visit(new URL(path!, file))
  }
  visit(new URL('../../packages/agents/src/index.ts', import.meta.url))
  expect(seen.size).toBeGreaterThan(10)
})

test('UAP-008 the execution entry has loop, react and plan', () => {
  for (const make of [execution.loop, execution.react, execution.plan]) {
    const strategy = make()
    expect(strategy.execute).toBeTypeOf('function')
    expect(strategy.stream).toBeTypeOf('function')
  }
  expect([execution.loop(), execution.react(), execution.plan()].map(({ name }) => name)).toEqual([
    'loop',
    'react',
    'plan',
  ])
})

test('UAP-011 UAP-155 what a vendor adds to messages survives the state, its JSON and the next request', async () => {
  const vendor = { scripted: { signature: 'S', nested: { list: [1, 'two'] } } }
  const native = { type: 'native' as const, name: 'server_tool', metadata: vendor }
  const model = scripted([
    [says('a', { metadata: vendor }), stops('end_turn', { metadata: vendor })],
    says('b'),
  ])
  const worker = agent({ model })
  const first = await worker.generate('one', AgentState.initial())
  const withBlock = first.state.withMessage(
    new AssistantMessage([native], undefined, { metadata: vendor }),
  )
  const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(withBlock.toJSON())))
  await worker.generate('two', restored)
  const sent = model.requests[1]!.messages
  expect(sent[1]?.metadata).toEqual(vendor)
  expect(sent[1]).toMatchObject({ content: [{ metadata: vendor }] })
  expect(sent[2]).toMatchObject({ content: [native], metadata: vendor })
})

test('UAP-011 nor is anything lost of calls, results and inputs, or of a history that has to be repaired', async () => {
  const vendor = { scripted: { signature: 'S', nested: [1] } }
  const call = (toolCallId: string) => ({
    toolCallId,
    toolName: 'look',
    arguments: { deep: [{ a: 1 }] },
    after: ['z'],
    metadata: vendor,
  })
  const result = (toolCallId: string) => ({
    toolCallId,
    toolName: 'look',
    result: { list: [1] },
    isError: false,
    citations: ['x'],
  })
  const called = new AssistantMessage([], [call('a'), call('b')], { metadata: vendor })
  const answered = new ToolResultMessage([result('a'), result('b')], { metadata: vendor })
  // The results of calls that are not in the history are left out of a request; the others stay as they are.
  const mixed = new ToolResultMessage([result('a'), result('gone'), result('b')], {
    metadata: vendor,
  })
  const input = JSON.parse(
    JSON.stringify(new UserMessage('continue', { metadata: vendor })),
  ) as never
  for (const results of [answered, mixed]) {
    const model = scripted([says('ok')])
    const state = AgentState.initial().withMessages([new UserMessage('x'), called, results])
    const restored = AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
    expect(restored.messages).toEqual(state.messages)
    const { state: next } = await agent({ model }).generate(input, restored)
    const [, sentCall, sentResults, sentInput] = model.requests[0]!.messages
    expect(sentCall).toEqual(called)
    expect(sentResults).toEqual(
      new ToolResultMessage(answered.results, { ...results, metadata: vendor }),
    )
    expect(sentInput).toEqual(messageFromJSON(input))
    expect(sentInput!.metadata).toEqual(vendor)
    expect(next.messages.slice(0, 4)).toEqual(model.requests[0]!.messages)
  }
})
