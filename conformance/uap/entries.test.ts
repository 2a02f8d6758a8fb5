import * as main from '@skein/agents'
import * as checkpoint from '@skein/agents/checkpoint'
import type { CheckpointStore } from '@skein/agents/checkpoint'
import * as middleware from '@skein/agents/middleware'
import { scriptedAgent } from '@skein/agents/testing'
import { says } from '@skein/ai/testing'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('UAP-007 the main entry has agent, AgentState, ThreadTree and ThreadNode', () => {
  const { agent, AgentState, ThreadTree, ThreadNode } = main
  expect([agent, AgentState, ThreadTree, ThreadNode].map((one) => typeof one)).toEqual(
    Array.from({ length: 4 }, () => 'function'),
  )
  expect(new ThreadTree().root).toBeInstanceOf(ThreadNode)
  expect(new ThreadTree().history()).toBeInstanceOf(AgentState)
})

test('UAP-009 the middleware entry has logging', async () => {
  const lines: string[] = []
  const log = middleware.logging({ logger: (line) => void lines.push(line) })
  expect(log.name).toBe('logging')
  await scriptedAgent([says('hi')], { middleware: [log] }).query('hello')
  expect(lines.length).toBe(2)
})

test('UAP-010 the checkpoint entry has fileCheckpoints and the type of a store', () => {
  const store: CheckpointStore = checkpoint.fileCheckpoints()
  const methods = ['save', 'load', 'loadMetadata', 'delete', 'list'] as const
  expect(methods.map((name) => typeof store[name])).toEqual(methods.map(() => 'function'))
  expect(store.record).toBeUndefined()
})

test('UAP-010 away from Node the entry loads, and a file store says what to do', () => {
  const { getBuiltinModule } = process
  try {
    Object.assign(process, { getBuiltinModule: undefined })
    expect(() => checkpoint.fileCheckpoints()).toThrow(/no file system|memoryCheckpoints/)
    expect(checkpoint.memoryCheckpoints()).toHaveProperty('save')
  } finally {
    Object.assign(process, { getBuiltinModule })
  }
})

test('UAP-092 thread trees are there, and agents work without them', async () => {
  expect(main.ThreadTree.prototype).toHaveProperty('history')
  const { state } = await scriptedAgent([says('hi')]).generate('hello', main.AgentState.initial())
  expect(state.messages.length).toBe(2)
})

test('UAP-120 what sub-agents do is shown deeper than what their caller does', () => {
  const root = join(import.meta.dirname, '..', '..')
  const { stdout } = spawnSync(
    process.execPath,
    ['--conditions=@skein/source', join(root, 'examples', '50-subagent-events.ts')],
    { encoding: 'utf8', cwd: root },
  )
  const depth = (text: string): number => {
    const line = stdout.split('\n').find((one) => one.includes(text)) ?? ''
    return line.length - line.trimStart().length
  }
  expect([
    depth('Step 1'),
    depth('explorer starts'),
    depth('explorer calls grep'),
    depth('explorer ends'),
  ]).toEqual([0, 2, 4, 2])
})
