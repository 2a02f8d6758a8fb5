import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  type AgentDefinition,
  asSubagent,
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  memoryStore,
  type RuntimeOptions,
  type SubagentToolConfig,
  type ToolDefinition,
  verifyAudit,
} from '../index.ts'
import { threadView } from '../view/index.ts'

const opened: EmbeddedRuntime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.stop({ graceMs: 0 })
})

/** What happened outside, in order. */
type World = string[]

const low = 'write_low_risk'

function unwrite(world: World): ToolDefinition {
  return defineTool({
    name: 'unwrite',
    description: 'Undoes.',
    args: z.object({ n: z.string() }),
    risk: low,
    execute: (_state, { n }) => void world.push(`undo ${n}`),
  })
}

function writer(world: World, name = 'write', more: object = {}): ToolDefinition {
  return defineTool({
    name,
    description: 'Writes.',
    args: z.object({ n: z.string() }),
    risk: low,
    rollback: { tool: 'unwrite', args: (args: unknown) => args },
    execute: (_state: unknown, { n }: { n: string }) => {
      world.push(n)
      return `wrote ${n}`
    },
    ...more,
  } as never)
}

const evidence = {
  name: 'proven',
  needs: [{ type: 'tool_result', source: 'read' }],
  verifiers: [],
} as const

const read = defineTool({
  name: 'read',
  description: 'Reads.',
  args: z.object({}),
  risk: 'read_only',
  execute: () => 'facts',
})

type Child = SubagentToolConfig

/** An agent whose model makes these steps, one per request. */
function agentOf(
  name: string,
  steps: Parameters<typeof scripted>[0],
  tools: readonly (ToolDefinition | Child)[],
  taskClass?: AgentDefinition['taskClass'],
): AgentDefinition {
  const prompt = definePrompt({ name, prompt: `You are ${name}.`, model: scripted(steps), tools })
  const agent = defineAgent({ name, description: name, sideA: { prompt } })
  return taskClass ? { ...agent, taskClass } : agent
}

const blocking = (agent: AgentDefinition): Child => ({ name: asSubagent(agent), blocking: true })

async function start(
  agents: readonly AgentDefinition[],
  world: World,
  more: Partial<RuntimeOptions> = {},
): Promise<EmbeddedRuntime> {
  const runtime = await createRuntime({
    agents,
    tools: [unwrite(world)],
    store: memoryStore(),
    limits: { stopGraceMs: 100 },
    ...more,
  })
  opened.push(runtime)
  await runtime.start()
  return runtime
}

describe('a session that fails safe undoes the writes of its subagents', () => {
  test.each([undefined, { name: 'own', needs: [], verifiers: [] }])(
    'in the reverse order of what happened, over three levels (task class of a child: %j)',
    async (taskClass) => {
      const world: World = []
      const write = writer(world)
      const grandchild = agentOf(
        'grandchild',
        [calls('write', { n: 'g1' }), says('Done.')],
        [write],
      )
      const child = agentOf(
        'child',
        [
          calls('write', { n: 'c1' }),
          calls('grandchild', { message: 'go' }),
          calls('write', { n: 'c2' }),
          says('Done.'),
        ],
        [write, blocking(grandchild)],
        taskClass,
      )
      const parent = agentOf(
        'parent',
        [
          calls('write', { n: 'p1' }),
          calls('child', { message: 'go' }),
          calls('write', { n: 'p2' }),
          says('A claim.'),
        ],
        [read, write, blocking(child)],
        evidence,
      )
      const runtime = await start([parent], world)
      const { id } = await runtime.threads.create({ agent: 'parent' })
      const result = await runtime.threads.run(id, 'go')
      expect(world).toEqual([
        'p1',
        'c1',
        'g1',
        'c2',
        'p2',
        'undo p2',
        'undo c2',
        'undo g1',
        'undo c1',
        'undo p1',
      ])
      expect(result).toMatchObject({ outcome: 'failed', reason: 'fail_safe' })
      expect(result.text).toBe(
        [
          'The result was not delivered: EVIDENCE_MISSING (0 of 1).',
          '',
          'What became of its writes, the last one first:',
          '- "write": undone.',
          '- "write" of child: undone.',
          '- "write" of grandchild: undone.',
          '- "write" of child: undone.',
          '- "write": undone.',
        ].join('\n'),
      )
      expect((await runtime.inbox.list()).length).toBe(0)
      const audit = await runtime.threads.audit(id)
      expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
      // The log of each thread says so too.
      const [kid] = await runtime.threads.list({ parentId: id })
      const view = threadView(await runtime.threads.events(kid!.id))
      const made = view.items.filter((item) => item.type === 'call' && item.toolName === 'write')
      expect(made).toMatchObject([{ undo: { status: 'done' } }, { undo: { status: 'done' } }])
    },
  )
})

test('also of a subagent that worked before the session made a call of its own', async () => {
  const world: World = []
  const write = writer(world)
  const child = (name: string): AgentDefinition =>
    agentOf(name, [calls('write', { n: name }), says('Done.')], [write])
  const parent = agentOf(
    'parent',
    [
      calls('first', { message: 'go' }),
      calls('write', { n: 'own' }),
      calls('second', { message: 'go' }),
      says('A claim.'),
    ],
    [read, write, blocking(child('first')), blocking(child('second'))],
    evidence,
  )
  const runtime = await start([parent], world)
  const { id } = await runtime.threads.create({ agent: 'parent' })
  await runtime.threads.run(id, 'go')
  expect(world.slice(3)).toEqual(['undo second', 'undo own', 'undo first'])
})

/** A parent without evidence whose only child writes once, with these declarations. */
async function withWrite(more: object, options: Partial<RuntimeOptions> = {}, world: World = []) {
  const write = writer(world, 'write', more)
  const child = agentOf('child', [calls('write', { n: 'c1' }), says('Done.')], [write])
  const steps = [calls('child', { message: 'go' }), says('A claim.')]
  const parent = agentOf('parent', steps, [read, blocking(child)], evidence)
  const runtime = await start([parent], world, options)
  const { id } = await runtime.threads.create({ agent: 'parent' })
  const result = await runtime.threads.run(id, 'go')
  await runtime.idle()
  return { runtime, id, world, result, waiting: await runtime.inbox.list() }
}

const lost = (world: World) => ({
  execute: (_state: unknown, { n }: { n: string }) => {
    world.push(n)
    throw new Error('connection lost')
  },
})

describe('a write that is not undone is named, and a person is asked', () => {
  test('if its rollback is by hand only or fails; not if it has none', async () => {
    const impossible = await withWrite({
      rollback: () => ({ type: 'tool_call', target: 'unwrite', payload: { n: 1 } }),
    })
    expect(impossible.result.text).toContain(
      '"write" of child: not undone, because undoing it failed',
    )
    expect(impossible.world).toEqual(['c1'])
    expect(impossible.waiting).toMatchObject([
      {
        threadId: impossible.id,
        toolName: 'write',
        arguments: { n: 'c1' },
        kind: 'in_doubt',
        path: ['parent'],
        question: { undo: 'failed', question: expect.stringContaining('child failed') },
      },
    ])
    const [item] = impossible.waiting
    expect((await impossible.runtime.threads.get(impossible.id)).lifecycle).toBe('failed')
    await impossible.runtime.inbox.settle({ ...item!, by: 'ann' }, 'applied')
    await impossible.runtime.idle()
    expect(await impossible.runtime.inbox.list()).toEqual([])
    expect(impossible.world).toEqual(['c1'])

    const none = await withWrite({ rollback: undefined })
    expect(none.result.text).toContain(
      '"write" of child: not undone, because its tool declares no rollback',
    )
    expect(none.waiting).toEqual([])
  })

  test.each([
    ['applied', ['c1', 'undo c1'], 'done'],
    ['absent', ['c1'], 'done'],
    ['unknown', ['c1'], 'closed'],
  ] as const)(
    'in doubt: nothing runs until a person has found it %s',
    async (found, left, status) => {
      const world: World = []
      const { runtime, id, result, waiting } = await withWrite(lost(world), {}, world)
      expect(result.text).toContain('it is unknown whether it happened')
      expect(world).toEqual(['c1'])
      expect(waiting).toMatchObject([
        { kind: 'in_doubt', toolName: 'write', question: { undo: 'in_doubt' } },
      ])
      expect((await runtime.threads.get(id)).lifecycle).toBe('failed')
      await runtime.inbox.settle({ ...waiting[0]!, by: 'ann' }, found)
      await runtime.idle()
      expect(world).toEqual(left)
      expect(await runtime.inbox.list()).toEqual([])
      const events = (await runtime.threads.events(id)).map(({ event }) => event)
      expect(events.findLast(({ type }) => type === 'undo_decided')).toMatchObject({ status })
      const audit = await runtime.threads.audit(id)
      expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
      const decisions = audit.lines.filter((line) => line.includes('"id":"ann"'))
      expect(decisions.length > 0).toBe(found !== 'unknown')
    },
  )

  test('a probe settles a write in doubt without a person', async () => {
    const world: World = []
    for (const [isThere, left] of [
      [true, ['c1', 'undo c1']],
      [false, ['c1']],
    ] as const) {
      world.splice(0)
      const { waiting } = await withWrite({ ...lost(world), probe: () => isThere }, {}, world)
      expect(waiting).toEqual([])
      expect(world).toEqual(left)
    }
  })

  test('in a subagent that has ended, too, whose own session failed', async () => {
    const world: World = []
    const write = writer(world, 'write', lost(world))
    const child = agentOf(
      'child',
      [calls('write', { n: 'c1' }), says('Done.')],
      [read, write],
      evidence,
    )
    const steps = [calls('child', { message: 'go' }), says('Fine.')]
    const parent = agentOf('parent', steps, [blocking(child)])
    const runtime = await start([parent], world)
    const { id } = await runtime.threads.create({ agent: 'parent' })
    const { outcome } = await runtime.threads.run(id, 'go')
    await runtime.idle()
    expect(outcome).toBe('completed')
    const [item] = await runtime.inbox.list()
    expect(item).toMatchObject({ path: ['parent', 'child'], toolName: 'write' })
    expect((await runtime.threads.get(item!.threadId)).lifecycle).toBe('terminated')
    await runtime.inbox.settle({ ...item!, by: 'ann' }, 'applied')
    await runtime.idle()
    expect(world).toEqual(['c1', 'undo c1'])
    expect(await runtime.inbox.list()).toEqual([])
  })
})

describe('a subagent that still works when its parent fails safe', () => {
  test('is stopped first, so that the order holds; its thread is told', async () => {
    const world: World = []
    const write = writer(world)
    let release!: () => void
    const held = new Promise<void>((resolve) => (release = resolve))
    const slow = writer(world, 'slow', {
      execute: async (_state: unknown, { n }: { n: string }) => {
        await held
        world.push(n)
        return `wrote ${n}`
      },
    })
    const child = agentOf(
      'child',
      [calls('write', { n: 'c1' }), calls('slow', { n: 'c2' }), says('Done.'), says('Again.')],
      [write, slow],
    )
    const started = new Promise<void>((resolve) => {
      void (async () => {
        while (!world.includes('c1')) await new Promise((next) => setTimeout(next, 5))
        resolve()
      })()
    })
    const wait = defineTool({
      name: 'wait',
      description: 'Waits.',
      args: z.object({}),
      risk: 'read_only',
      execute: async () => {
        await started
        setTimeout(release, 50)
        return 'ok'
      },
    })
    const parent = agentOf(
      'parent',
      [
        calls('subagent_create', { agent: 'child', name: 'kid', message: 'go' }),
        calls('wait', {}),
        calls('write', { n: 'p1' }),
        says('A claim.'),
      ],
      [
        read,
        wait,
        write,
        { name: asSubagent(child), blocking: false, resumable: { maxInstances: 1 } },
      ],
      evidence,
    )
    const runtime = await start([parent], world)
    const { id } = await runtime.threads.create({ agent: 'parent' })
    const { text, reason } = await runtime.threads.run(id, 'go')
    expect(reason).toBe('fail_safe')
    expect(world).toEqual(['c1', 'p1', 'c2', 'undo c2', 'undo p1', 'undo c1'])
    expect(text).toContain('"slow" of child: undone')
    const [kid] = await runtime.threads.list({ parentId: id })
    const { outcome } = await runtime.threads.run(kid!.id, 'And?')
    expect(outcome).toBe('completed')
    const told = (await runtime.threads.messages(kid!.id, { includeSilent: true })).map(
      ({ message }) => message.text,
    )
    expect(told.filter((one) => /was undone, because the session failed/.test(one))).toHaveLength(2)
  })
})
