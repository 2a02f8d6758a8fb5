import { describe, expect, test } from 'vitest'
import {
  hashJson,
  rules,
  type Envelope,
  type Identity,
  type Reason,
  type TaskClass,
} from '../../src/index.ts'
import type { RunLimits } from '../../src/journal/events.ts'
import {
  codesOf,
  identity,
  init,
  judgedResult,
  kit,
  taskOf,
  toolOf,
  undoBy,
} from '../support/kit.ts'

const nest = (
  name: string,
  tools: TaskClass['tools'],
  limits: TaskClass['limits'] = {},
): TaskClass => taskOf({ name, tools, limits })

test('UAICP-17 a child cannot exceed its parent: tier, calls, depth, deadline, freedom', async () => {
  const { governor, world, time, entries } = await kit()
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const wide = nest('wide', [read, write], { toolCalls: 99, depth: 9, deadlineMs: 1e9 })
  const tier = await governor.run(nest('t', [], { ceiling: 'read_only' }), init, (run) =>
    run.child(wide, {}, async (child) => (await child.call(write, {})).result),
  )
  expect(codesOf(tier)).toEqual(expect.arrayContaining(['CHILD_FAIL_SAFE', 'RISK_CEILING']))
  const calls = await governor.run(nest('c', [read], { toolCalls: 3 }), init, async (run) => {
    await run.call(read, {})
    await run.child(wide, {}, async (child) => (await child.call(read, {})).result)
    return run.child(wide, {}, async (child) => {
      await child.call(read, { n: 1 })
      return (await child.call(read, { n: 2 })).result
    })
  })
  expect(codesOf(calls)).toContain('BUDGET_EXCEEDED')
  expect(world.count('read')).toBe(3)
  const deep = await governor.run(nest('d', [], { depth: 1 }), init, (run) =>
    run.child(wide, {}, (child) => child.child(wide, {}, async () => 1)),
  )
  expect(codesOf(deep)).toContain('DEPTH_EXCEEDED')
  const late = governor.run(nest('l', [], { deadlineMs: 100 }), init, (run) =>
    run.child(wide, {}, () => new Promise<number>(() => undefined)),
  )
  await time.advance(101)
  expect(codesOf(await late)).toContain('DEADLINE_EXCEEDED')
  const opened = (await entries()).filter(({ type }) => type === 'opened')
  const [outer, inner] = opened.slice(-2).map(({ data }) => data['limits'] as RunLimits)
  expect(inner?.deadline).toBe(outer?.deadline)
  expect(inner?.deadline).toBeDefined()
  const free = await governor.run(nest('f', []), init, (run) =>
    run.child(wide, { identity: { ...identity, control_class: 'autonomous' } }, async () => 1),
  )
  expect(codesOf(free)).toContain('CONTROL_CLASS_BLOCKED')
  expect(world.count('write')).toBe(0)
})

test('UAICP-17 calls of descendants count while they run, at any depth', async () => {
  const { governor, world } = await kit()
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const inner = nest('inner', [read, write])
  const outer = nest('outer', [], { toolCalls: 2 })
  for (const tool of [read, write]) {
    const deep = await governor.run(outer, init, (run) =>
      run.child(inner, {}, (child) =>
        child.child(inner, {}, async (grandchild) => {
          for (const n of [1, 2, 3]) await grandchild.call(tool, { n })
          return 1
        }),
      ),
    )
    expect(codesOf(deep)).toContain('BUDGET_EXCEEDED')
    expect(world.count(tool.name)).toBe(2)
  }
  // Calls that began together: none of them is settled when the others are judged.
  const looks = [1, 2, 3].map((n) => ({ n }))
  const together = await governor.run(outer, init, (run) =>
    run.child(inner, {}, async (child) => {
      await Promise.all(looks.map((args) => child.call(read, args)))
      return 1
    }),
  )
  expect(codesOf(together)).toContain('BUDGET_EXCEEDED')
  expect(world.count('read')).toBe(4)
})

test('UAICP-18 parent traces mark the path, in envelopes and evidence', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read')
  const inner = nest('inner', [read])
  const traces: (string | undefined)[][] = []
  const result = await governor.run(nest('outer', []), init, (run) =>
    run.child(inner, {}, (child) => {
      traces.push([child.parent_trace_id, run.trace_id])
      return child.child(inner, {}, async (grandchild) => {
        traces.push([grandchild.parent_trace_id, child.trace_id])
        const { evidence } = await grandchild.call(read, {})
        traces.push([evidence.parent_trace_id, child.trace_id])
        return 1
      })
    }),
  )
  expect(judgedResult(result).state).toBe('deliver')
  for (const [a, b] of traces) expect(a).toBe(b)
  const paths = new Map<string, string | undefined>()
  for (const { envelope } of await entries()) paths.set(envelope.trace_id, envelope.parent_trace_id)
  expect([...paths.values()].filter((parent) => parent === undefined)).toHaveLength(1)
  expect(paths.size).toBe(3)
})

test('UAICP-18 what a child streams names the trace of its parent', async () => {
  const { governor } = await kit()
  const chunks: Envelope[] = []
  const traces: string[] = []
  const result = await governor.run(
    nest('outer', []),
    { ...init, onChunk: (chunk) => chunks.push(chunk) },
    (run) =>
      run.child(nest('inner', []), {}, async (child) => {
        traces.push(child.trace_id, run.trace_id)
        child.chunk('from the child')
        return 1
      }),
  )
  expect(result.state).toBe('deliver')
  const [trace_id, parent_trace_id] = traces
  expect(chunks).toMatchObject([
    { trace_id, parent_trace_id, streaming: { 'uaicp:text': 'from the child' } },
    { trace_id, parent_trace_id, streaming: { is_final: true } },
  ])
})

test('UAICP-18 a grandchild’s failure reaches the root as a reason, unless it is repaired', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read')
  const needy = taskOf({
    name: 'needy',
    tools: [read],
    needs: [{ type: 'tool_result', source: 'read' }],
  })
  const inner = nest('inner', [])
  const body =
    (isGood: (attempt: number) => boolean): Parameters<typeof governor.run>[2] =>
    (run) =>
      run.child(inner, {}, (child) =>
        child.child(needy, {}, async (grandchild) => {
          if (isGood(run.attempt)) await grandchild.call(read, {})
          return 1
        }),
      )
  const failed = await governor.run(
    nest('outer', []),
    init,
    body(() => false),
  )
  expect(codesOf(failed)).toEqual(expect.arrayContaining(['CHILD_FAIL_SAFE', 'EVIDENCE_MISSING']))
  const settled = (await entries()).filter(({ type }) => type === 'child_settled')
  expect(settled).toHaveLength(2)
  for (const { data, envelope } of settled) {
    expect(envelope.outcome).toBe('failure')
    expect((data['reasons'] as Reason[]).map(({ code }) => code)).toContain('EVIDENCE_MISSING')
  }
  const caught = await governor.run(nest('outer', []), init, async (run) => {
    await body(() => false)(run).catch(() => undefined)
    return 'all is well'
  })
  expect(codesOf(caught)).toContain('CHILD_FAIL_SAFE')
  const repaired = await governor.run(
    { ...nest('outer', []), repair: { max: 1 } },
    init,
    body((attempt) => attempt === 2),
  )
  expect(repaired.state).toBe('deliver')
})

test('UAICP-18 approvals of a child surface at the outermost run and reach it again', async () => {
  const { governor, world, sign, restart } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const inner = nest('inner', [high, toolOf(world, 'undo_high')])
  const outer = nest('outer', [])
  let asked = 0
  const body: Parameters<typeof governor.run>[2] = (run) =>
    run.child(inner, {}, async (child) => {
      await child.step('think', () => ++asked)
      return (await child.call(high, { n: 1 })).result
    })
  const first = await governor.run(outer, init, body)
  if (first.outcome !== 'pending') throw new Error('not pending')
  expect(first.waiting).toMatchObject([{ action: { tool: 'high', depth: 1 } }])
  const tokens = [await sign(first.waiting[0]!)]
  const second = await restart({ tasks: [inner] }).resume(first.request_id, outer, body, { tokens })
  expect(second).toMatchObject({ state: 'deliver', value: { ok: true } })
  expect(world.count('high')).toBe(1)
  expect(asked).toBe(1)
})

test('no ancestor approves for its descendant', async () => {
  const { governor, world, sign, restart } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const inner = nest('inner', [high, toolOf(world, 'undo_high')])
  const middle = nest('middle', [])
  const outer = nest('outer', [])
  const as = (agent_id: string) => ({ identity: { ...init.identity, agent_id } })
  const body: Parameters<typeof governor.run>[2] = (run) =>
    run.child(middle, as('agent-2'), (second) =>
      second.child(inner, as('agent-3'), async (third) => (await third.call(high, {})).result),
    )
  const first = await governor.run(outer, { ...init, ...as('agent-1') }, body)
  if (first.outcome !== 'pending') throw new Error('not pending')
  for (const approver of ['agent-3', 'agent-2', 'agent-1']) {
    const tokens = [await sign(first.waiting[0]!, approver)]
    const again = await restart({ tasks: [inner, middle] }).resume(first.request_id, outer, body, {
      tokens,
    })
    expect(again).toMatchObject({ outcome: 'pending' })
    expect(world.done).toEqual([])
  }
  const tokens = [await sign(first.waiting[0]!)]
  const last = restart({ tasks: [inner, middle] })
  expect(await last.resume(first.request_id, outer, body, { tokens })).toMatchObject({
    state: 'deliver',
  })
})

test('UAICP-26 writes of a child that delivered are undone when its parent fails', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const inner = nest('inner', [write, toolOf(world, 'undo_write', { risk: 'write_low_risk' })])
  const outer = taskOf({ name: 'outer', tools: inner.tools, needs: [{ type: 'test_report' }] })
  const chunks: Envelope[] = []
  const result = await governor.run(
    outer,
    { ...init, onChunk: (one) => chunks.push(one) },
    async (run) => {
      await run.call(write, { n: 1 })
      await run.child(inner, {}, async (child) => {
        await child.call(write, { n: 2 })
        return (await child.call(write, { n: 3 })).result
      })
      return (await run.call(write, { n: 4 })).result
    },
  )
  expect(result).toMatchObject({
    state: 'fail_safe',
    undo: [1, 2, 3, 4].map(() => ({ status: 'done' })),
  })
  expect(world.done.slice(4)).toEqual([4, 3, 2, 1].map((n) => `undo_write {"n":${n}}`))
})

test('UAICP-17 the policy of a parent’s task binds its children', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const policy = rules([{ when: ({ tool }) => tool === 'write', effect: 'deny' }], { id: 'parent' })
  const result = await governor.run({ ...nest('outer', []), policy }, init, (run) =>
    run.child(nest('inner', [write]), {}, async (child) => (await child.call(write, {})).result),
  )
  expect(codesOf(result)).toContain('POLICY_BLOCKED')
  expect(world.done).toEqual([])
})

test('UAICP-23 a child with a policy of its own is judged by those above it, too', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const policyOf = (id: string, effect: 'allow' | 'deny') =>
    rules([{ when: ({ tool }) => tool === 'write', effect }], { id })
  const inner = { ...nest('inner', [write]), policy: policyOf('child', 'allow') }
  for (const effect of ['allow', 'deny'] as const) {
    const outer = { ...nest('outer', []), policy: policyOf('parent', effect) }
    const result = await governor.run(outer, init, (run) =>
      run.child(inner, {}, async (child) => (await child.call(write, {})).result),
    )
    expect(result.state).toBe(effect === 'allow' ? 'deliver' : 'fail_safe')
  }
  expect(world.done).toHaveLength(1)
})

test('UAICP-18 cancelling a parent that waits ends its children and undoes what they did', async () => {
  const { governor, world, restart, entries } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
  const inner = nest('inner', [write, high, undo])
  const outer = nest('outer', [])
  const first = await governor.run(outer, init, (run) =>
    run.child(inner, {}, async (child) => {
      await child.call(write, { n: 1 })
      return (await child.call(high, { n: 2 })).result
    }),
  )
  const id = 'request_id' in first ? first.request_id : ''
  const ended = await restart({ tasks: [outer, inner] }).cancel(id)
  expect(codesOf(ended)).toEqual(['CANCELLED'])
  expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}'])
  const ends = (await entries()).filter(({ type }) => type === 'failed_safe')
  expect(ends).toHaveLength(2)
  const { request_id } = ends[0]!.envelope
  expect(ends[0]!.data).toMatchObject({
    reasons: [{ code: 'CANCELLED', subject: request_id, detail: 'its parent failed' }],
    missing: [],
  })
  const settled = (await entries(id)).find(({ type }) => type === 'child_settled')
  expect(settled).toMatchObject({ envelope: { outcome: 'failure' } })
})

test('UAICP-34 the result of a request that failed is the same when it is read again, with the writes of its children', async () => {
  const { governor, world, restart } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: 'write_low_risk' })
  const inner = nest('inner', [write, undo])
  const outer = taskOf({ name: 'outer', tools: [write, undo], needs: [{ type: 'test_report' }] })
  const ids: string[] = []
  const body: Parameters<typeof governor.run>[2] = async (run) => {
    await run.call(write, { n: 1 })
    await run.child(inner, {}, async (child) => {
      ids.push(child.request_id, run.request_id)
      return (await child.call(write, { n: 2 })).result
    })
    return 1
  }
  const first = await governor.run(outer, init, body)
  if (first.state !== 'fail_safe') throw new Error(first.state)
  const action = (n: number) => ({ type: 'tool_call', target: 'undo_write', payload: { n } })
  expect(first.undo).toMatchObject([
    { request_id: ids[0], call: '1.1', tool: 'write', action: action(2), status: 'done' },
    { request_id: ids[1], call: '1.1', tool: 'write', action: action(1), status: 'done' },
  ])
  const again = await restart({ tasks: [inner] }).resume(ids[1]!, outer, body)
  expect(again).toEqual(first)
  expect(world.done).toHaveLength(4)
})

test('UAICP-18 the end of a child in the log of its parent says which child it was and what it left', async () => {
  const { governor, world, entries } = await kit()
  const write = toolOf(world, 'write', { risk: 'write_low_risk' })
  const inner = nest('inner', [write, toolOf(world, 'read')])
  const ids: [string, string][] = []
  await governor.run(nest('outer', []), init, async (run) => {
    await run.child(inner, {}, async (child) => {
      ids.push([child.request_id, child.trace_id])
      await child.call(write, { n: 1 })
      await child.call(write, { n: 2 })
      return { answer: 42 }
    })
    await run
      .child(inner, {}, async (child) => {
        ids.push([child.request_id, child.trace_id])
        throw new Error('no')
      })
      .catch(() => undefined)
    return 1
  })
  const settled = (await entries()).filter(({ type }) => type === 'child_settled')
  const [[first, trace], [second, otherTrace]] = ids as [[string, string], [string, string]]
  expect(settled.map(({ data }) => data)).toEqual([
    {
      child: '1.c1',
      request_id: first,
      trace_id: trace,
      task: 'inner',
      calls: 2,
      effects: [
        { request_id: first, call: '1.1' },
        { request_id: first, call: '1.2' },
      ],
      hash: hashJson({ answer: 42 }),
    },
    {
      child: '1.c2',
      request_id: second,
      trace_id: otherTrace,
      task: 'inner',
      calls: 0,
      effects: [],
      reasons: [{ code: 'RUN_ERROR', detail: 'no' }],
    },
  ])
  const opened = (await entries()).filter(({ type }) => type === 'child_opened')
  expect(opened[0]?.data).toEqual({
    child: '1.c1',
    request_id: first,
    trace_id: trace,
    task: 'inner',
  })
})

describe('UAICP-34 a process that dies around the end or the start of a child', () => {
  async function dieAt(dies: (line: string, isRoot: boolean) => boolean) {
    const made = await kit()
    const { world, log } = made
    const write = toolOf(world, 'write', { risk: 'write_low_risk', rollback: undoBy('write') })
    const inner = nest('inner', [write, toolOf(world, 'undo_write', { risk: 'write_low_risk' })])
    const outer = nest('outer', [])
    const request_id = '0190aaaa-0000-7000-8000-000000000001'
    let isDead = false
    const dying = made.restart({
      audit: {
        read: log.read,
        append: (entry, options) => {
          isDead ||= dies(entry.line, entry.request_id === request_id)
          if (isDead) throw new Error('gone')
          return log.append(entry, options)
        },
      },
    })
    const result = await dying.run(outer, { ...init, request_id }, (run) =>
      run.child(inner, {}, async (child) => (await child.call(write, { n: 1 })).result),
    )
    expect(result.state).toBe('fail_safe')
    return { ...made, request_id, next: made.restart({ tasks: [outer, inner] }) }
  }

  test('UAICP-34 a child that delivered is settled later, and its write is undone with its parent', async () => {
    const { next, request_id, entries, world } = await dieAt((line) =>
      line.includes('"child_settled"'),
    )
    expect(world.done).toEqual(['write {"n":1}'])
    const ended = await next.cancel(request_id)
    expect(ended).toMatchObject({
      state: 'fail_safe',
      reasons: [{ code: 'CANCELLED' }],
      undo: [{ tool: 'write', call: '1.1', status: 'done' }],
    })
    expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}'])
    const settled = (await entries(request_id)).filter(({ type }) => type === 'child_settled')
    expect(settled).toMatchObject([{ envelope: { outcome: 'success' }, data: { calls: 1 } }])
  })

  test('UAICP-34 a child that the log of its parent names, but that never began, does not matter', async () => {
    const { next, request_id, world } = await dieAt((_line, isRoot) => !isRoot)
    const ended = await next.cancel(request_id)
    expect(ended).toMatchObject({ reasons: [{ code: 'CANCELLED' }], undo: [] })
    expect(world.done).toEqual([])
  })
})

test('UAICP-17 each limit of a child is the narrower one, its own or its parent’s', async () => {
  const { governor, entries, time } = await kit()
  const limitsIn = async (outer: TaskClass['limits'], inner: TaskClass['limits']) => {
    await governor.run(nest('outer', [], outer), init, (run) =>
      run.child(nest('inner', [], inner), {}, async () => 1),
    )
    const opened = (await entries()).filter(({ type }) => type === 'opened')
    return opened.at(-1)?.data['limits']
  }
  const at = (ms: number) => time.now() + ms
  const high = 'write_high_risk'
  const low = 'write_low_risk'
  expect(await limitsIn({}, {})).toEqual({ depth: 2, ceiling: high })
  expect(
    await limitsIn(
      { deadlineMs: 10, depth: 9, ceiling: low, toolCalls: 1 },
      { deadlineMs: 20, depth: 20, ceiling: high, toolCalls: 7 },
    ),
  ).toEqual({ deadline: at(10), depth: 8, ceiling: low, tool_calls: 7 })
  expect(
    await limitsIn(
      { deadlineMs: 20, depth: 9, ceiling: low },
      { deadlineMs: 10, depth: 1, ceiling: 'read_only' },
    ),
  ).toEqual({ deadline: at(10), depth: 1, ceiling: 'read_only' })
  expect(await limitsIn({ deadlineMs: 20 }, {})).toEqual({
    deadline: at(20),
    depth: 2,
    ceiling: high,
  })
  expect(await limitsIn({}, { deadlineMs: 5 })).toMatchObject({ deadline: at(5) })
})

test('UAICP-17 a child acts for the owner of its parent, with as much freedom or less', async () => {
  const { governor } = await kit()
  const asking = (changes: Partial<Pick<Identity, 'agent_id' | 'owner_id' | 'control_class'>>) =>
    governor.run(nest('outer', []), init, (run) =>
      run.child(nest('inner', []), { identity: { ...identity, ...changes } }, async () => 1),
    )
  const foreign = await asking({ owner_id: 'shop' })
  expect(foreign).toMatchObject({
    reasons: [
      { code: 'CHILD_FAIL_SAFE', subject: 'inner' },
      { code: 'IDENTITY_INVALID', subject: '/identity/owner_id' },
    ],
  })
  expect(await asking({ control_class: 'autonomous' })).toMatchObject({
    reasons: [
      { code: 'CHILD_FAIL_SAFE' },
      { code: 'CONTROL_CLASS_BLOCKED', subject: 'autonomous' },
    ],
  })
  for (const control_class of ['human-supervised', 'human-directed'] as const)
    expect((await asking({ control_class, agent_id: 'agent-2' })).state).toBe('deliver')
})

test('UAICP-18 recovery ends children before their parents, and only tasks that are known', async () => {
  const made = await kit()
  const { governor, world, time, entries, restart } = made
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const inner = nest('inner', [high, toolOf(world, 'undo_high')])
  const outer = nest('outer', [], { deadlineMs: 1000 })
  const waiting = await governor.run(outer, init, (run) =>
    run.child(inner, {}, async (child) => (await child.call(high, {})).result),
  )
  const strange = await governor.run(nest('strange', inner.tools), init, async (run) => {
    return (await run.call(high, {})).result
  })
  if (waiting.outcome !== 'pending' || strange.outcome !== 'pending') throw new Error('not pending')
  const child = waiting.waiting[0]!.action.request_id
  const recover = () => restart({ tasks: [outer, inner] }).recover()
  await time.advance(999)
  expect(await recover()).toEqual([
    { request_id: child, task: 'inner', state: 'execute', inDoubt: [], isPending: true },
    {
      request_id: waiting.request_id,
      task: 'outer',
      state: 'execute',
      inDoubt: [],
      isPending: false,
    },
  ])
  await time.advance(1)
  expect(await recover()).toMatchObject([
    { request_id: child, state: 'fail_safe', isPending: false },
    { request_id: waiting.request_id, state: 'fail_safe', isPending: false },
  ])
  const ends = (await entries()).filter(({ type }) => type === 'failed_safe')
  expect(ends.map(({ envelope, data }) => [envelope.request_id, data])).toEqual(
    [child, waiting.request_id].map((id) => [
      id,
      { reasons: [{ code: 'DEADLINE_EXCEEDED', subject: id }], missing: [], undo: [] },
    ]),
  )
})

test('UAICP-03 the ids of children come from the id source: the same run leaves the same log', async () => {
  const logs: string[][] = []
  for (let time = 0; time < 2; time++) {
    const { governor, world, lines } = await kit()
    const read = toolOf(world, 'read')
    await governor.run(nest('outer', []), init, (run) =>
      run.child(nest('inner', [read]), {}, async (child) => (await child.call(read, {})).result),
    )
    logs.push(await lines())
  }
  expect(logs[0]).toEqual(logs[1])
  expect(logs[0]!.length).toBeGreaterThan(8)
})
