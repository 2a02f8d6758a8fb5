import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { hashJson, memoryPayloads, rules, type Governor, type Run } from '../../src/index.ts'
import {
  codesOf,
  init,
  judgedResult,
  kit,
  taskOf,
  toolOf,
  undoBy,
  type Kit,
} from '../support/kit.ts'

type Body = (run: Run) => Promise<number>

function bank(made: Kit) {
  const { world } = made
  const read = toolOf(world, 'read', { run: () => world.done.length })
  const low = toolOf(world, 'low', { risk: 'write_low_risk' })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const undo = toolOf(world, 'undo_high', { risk: 'write_low_risk' })
  return { read, low, high, task: taskOf({ tools: [read, low, high, undo] }) }
}

async function park(governor: Governor, task: ReturnType<typeof taskOf>, body: Body) {
  const result = await governor.run(task, init, body)
  if (result.outcome !== 'pending') throw new Error(`not pending: ${JSON.stringify(result)}`)
  return result
}

test('resume goes on in another process and runs no completed call or step again', async () => {
  const made = await kit()
  const { read, low, high, task } = bank(made)
  let asked = 0
  const body: Body = async (run) => {
    const before = await run.call(read, {})
    await run.call(low, { n: 1 })
    const thought = await run.step('think', () => ++asked)
    await run.call(high, { thought })
    return Number(before.result) + thought
  }
  const first = await park(made.governor, task, body)
  const again = await made.restart().resume(first.request_id, task, body)
  expect(again).toEqual(first)
  const tokens = [await made.sign(first.waiting[0]!)]
  const done = await made.restart().resume(first.request_id, task, body, { tokens })
  expect(judgedResult(done)).toMatchObject({ state: 'deliver', value: 1 })
  expect(asked).toBe(1)
  expect(made.world.done).toEqual(['read {}', 'low {"n":1}', 'high {"thought":1}'])
  const recorded = await made.restart().resume(first.request_id, task, async () => 99)
  expect(recorded).toMatchObject({ state: 'deliver', value: 1 })
  expect(made.world.done).toHaveLength(3)
})

test('other arguments under the same call are another request, with a rollback of their own', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const asking =
    (n: number): Body =>
    async (run) => {
      await run.call(high, { n })
      return n
    }
  const first = await park(made.governor, task, asking(1))
  const rollbackOf = ({ waiting }: typeof first) => waiting[0]!.action.rollback
  expect(rollbackOf(first)).toMatchObject({ target: 'undo_high', payload: { n: 1 } })
  const changed = await made.restart().resume(first.request_id, task, asking(2))
  if (changed.outcome !== 'pending') throw new Error('not pending')
  expect(changed.waiting[0]!.action.args).toEqual({ n: 2 })
  expect(rollbackOf(changed)).toMatchObject({ target: 'undo_high', payload: { n: 2 } })
})

test('one approved state resumed three times runs its action once', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const tokens = [await made.sign(first.waiting[0]!)]
  const results = await Promise.allSettled(
    [1, 2, 3].map(() => made.restart().resume(first.request_id, task, body, { tokens })),
  )
  expect(made.world.count('high')).toBe(1)
  const delivered = results.filter(
    (one) => one.status === 'fulfilled' && one.value.state === 'deliver',
  )
  expect(delivered).toHaveLength(1)
})

test('a token that is of no use leaves the run waiting, with the reason', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const token = await made.sign(first.waiting[0]!)
  await made.time.advance(120_000)
  const late = await made.restart().resume(first.request_id, task, body, { tokens: [token] })
  expect(late).toMatchObject({ outcome: 'pending', rejected: [{ code: 'APPROVAL_EXPIRED' }] })
  const fresh = [await made.sign(first.waiting[0]!)]
  expect(
    await made.restart().resume(first.request_id, task, body, { tokens: fresh }),
  ).toMatchObject({
    state: 'deliver',
  })
})

test('a child that waits twice reports every request and every rejection to its parent', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = (run) =>
    run.child(task, {}, async (child) => {
      const calls = [{ n: 1 }, { n: 2 }].map((args) => child.call(high, args))
      await Promise.allSettled(calls)
      return 1
    })
  const first = await park(made.governor, task, body)
  expect(first).toMatchObject({ waiting: [{}, {}], rejected: undefined })
  const token = await made.sign(first.waiting[1]!)
  await made.time.advance(120_000)
  const late = await made.restart().resume(first.request_id, task, body, { tokens: [token] })
  if (late.outcome !== 'pending') throw new Error(late.outcome)
  const idsOf = (waiting: typeof late.waiting) => waiting.map(({ id }) => id).sort()
  expect(idsOf(late.waiting)).toEqual(idsOf(first.waiting))
  const codes = late.rejected?.map(({ code }) => code).sort()
  expect(codes).toEqual(['APPROVAL_EXPIRED', 'APPROVAL_EXPIRED'])
})

test('a person who denies is heard, and the run fails safe', async () => {
  const made = await kit()
  const { high, low, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(low, {})
    await run.call(high, { n: 1 })
    return 1
  }
  const first = await park(made.governor, task, body)
  const by = { type: 'human', id: 'pat' } as const
  const denials = [{ id: first.waiting[0]!.id, reason: 'too much', by }]
  const result = await made.restart().resume(first.request_id, task, body, { denials })
  expect(codesOf(result)).toContain('APPROVAL_DENIED')
  expect(result).toMatchObject({ undo: [{ tool: 'low', status: 'skipped' }] })
  expect(made.world.count('high')).toBe(0)
})

describe('a replay that takes another way is a conflict before it has an effect', () => {
  const ways: [string, (tools: ReturnType<typeof bank>) => Body][] = [
    [
      'other arguments',
      ({ low, high }) =>
        async (run) => {
          await run.call(low, { n: 2 })
          await run.call(high, {})
          return 1
        },
    ],
    [
      'another tool',
      ({ read, high }) =>
        async (run) => {
          await run.call(read, { n: 1 })
          await run.call(high, {})
          return 1
        },
    ],
    ['no call', () => async () => 1],
  ]
  test.each(ways)('%s', async (_name, other) => {
    const made = await kit()
    const tools = bank(made)
    const first = await park(made.governor, tools.task, async (run) => {
      await run.call(tools.low, { n: 1 })
      await run.call(tools.high, {})
      return 1
    })
    const result = await made.restart().resume(first.request_id, tools.task, other(tools))
    expect(codesOf(result)).toContain('STATE_CONFLICT')
    expect(made.world.done).toEqual(['low {"n":1}'])
  })
})

test.each(['erased', 'changed'])('a payload that was %s is not believed on resume', async (how) => {
  const payloads = memoryPayloads()
  const made = await kit({ payloads })
  const { read, high, task } = bank(made)
  let damage: (() => void) | undefined
  const seen: unknown[] = []
  const body: Body = async (run) => {
    const { evidence, result } = await run.call(read, {})
    seen.push(result)
    damage = () => {
      if (how === 'erased') payloads.erase(evidence.hash)
      else void payloads.put(evidence.hash, '"forged"')
    }
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  damage?.()
  const result = await made.restart().resume(first.request_id, task, body)
  expect(codesOf(result)).toContain('EVIDENCE_INVALID')
  expect(seen).toEqual([0])
})

test('a policy that changed while the run waited asks for a new approval', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  const tokens = [await made.sign(first.waiting[0]!)]
  const policy = rules([{ when: () => true, effect: 'review' }], { id: 'stricter' })
  const second = await made.restart({ policy }).resume(first.request_id, task, body, { tokens })
  expect(second).toMatchObject({ outcome: 'pending' })
  expect(made.world.done).toEqual([])
})

test('a policy that now denies a write that was made blocks its delivery', async () => {
  const made = await kit()
  const { high, low, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(low, { n: 1 })
    await run.call(high, {}).catch((error: { code: string }) => {
      if (error.code !== 'APPROVAL_DENIED') throw error
    })
    return 1
  }
  const first = await park(made.governor, task, body)
  const denials = [{ id: first.waiting[0]!.id, reason: 'no' }]
  const policy = rules([
    { when: ({ tool }) => tool === 'low', effect: 'deny' },
    { when: ({ tool }) => tool === 'high', effect: 'review' },
  ])
  const result = await made.restart({ policy }).resume(first.request_id, task, body, { denials })
  expect(result.outcome).not.toBe('success')
})

test('cancel ends a run that waits, and recover one whose time is over', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  expect(codesOf(await made.governor.cancel(first.request_id))).toEqual(['CANCELLED'])
  const timed = { ...task, name: 'timed', limits: { deadlineMs: 1000 } }
  const second = await park(made.governor, timed, body)
  const early = await made.restart({ tasks: [timed] }).recover()
  expect(early).toMatchObject([
    { request_id: second.request_id, isPending: true, state: 'execute' },
  ])
  await made.time.advance(1001)
  const late = await made.restart({ tasks: [timed] }).recover()
  expect(late).toMatchObject([
    { request_id: second.request_id, state: 'fail_safe', isPending: false },
  ])
  expect(await made.restart({ tasks: [timed] }).recover()).toEqual([])
})

test('a tool whose running twice is one run is run again after a crash, with the same key', async () => {
  const made = await kit()
  const { world } = made
  const keys: string[] = []
  let isFirst = true
  const pay = toolOf(world, 'pay', {
    risk: 'write_low_risk',
    idempotent: true,
    run: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey)
      if (!isFirst) return 'paid'
      isFirst = false
      return new Promise(() => undefined)
    },
  })
  const task = taskOf({ tools: [pay] })
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const body: Body = async (run) => {
    await run.call(pay, { n: 1 })
    return 1
  }
  void made.governor.run(task, { ...init, request_id }, body)
  await made.time.advance(1)
  const result = await made.restart().resume(request_id, task, body)
  expect(result).toMatchObject({ state: 'deliver' })
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
})

test('UAICP-04 a proposal is in the log by its hash, as that of the agent, and allows nothing', async () => {
  const made = await kit()
  const { low, task } = bank(made)
  const policy = rules([{ when: ({ tool }) => tool === 'low', effect: 'deny' }])
  const result = await made.restart({ policy }).run(task, init, async (run) => {
    await run.plan({ call: 'low', args: {} })
    await run.call(low, {})
    return 1
  })
  expect(codesOf(result)).toContain('POLICY_BLOCKED')
  const planned = (await made.entries()).find(({ type }) => type === 'planned')
  const hash = hashJson({ args: {}, call: 'low' })
  expect(planned).toMatchObject({
    data: { hash },
    envelope: { state: 'plan', outcome: 'success' },
  })
  expect(planned?.envelope.identity['uaicp:actor']).toEqual({ type: 'agent', id: 'agent-1' })
  expect(await made.payloads.get(hash)).toBe('{"args":{},"call":"low"}')
})

describe('a step', () => {
  test('UAICP-03 that failed fails again in the same way when the body runs again', async () => {
    const made = await kit()
    const { high, task } = bank(made)
    let runs = 0
    const caught: unknown[] = []
    const body: Body = async (run) => {
      const fails = (): never => {
        runs += 1
        throw new TypeError('no answer')
      }
      await run.step('ask', fails).catch((error: { message: string; reasons: unknown }) => {
        caught.push([error.message, error.reasons])
      })
      await run.step('nothing', () => undefined as never)
      const value = await run.step('list', () => ({ items: [1] }))
      caught.push(value, Object.isFrozen(value.items))
      await run.call(high, {})
      return 1
    }
    const first = await park(made.governor, task, body)
    const tokens = [await made.sign(first.waiting[0]!)]
    const done = await made.restart().resume(first.request_id, task, body, { tokens })
    expect(done.state).toBe('deliver')
    expect(runs).toBe(1)
    const reasons = [{ code: 'RUN_ERROR', subject: 'ask', detail: 'no answer' }]
    const once = [['The step "ask" failed: no answer', reasons], { items: [1] }, true]
    expect(caught).toEqual([...once, ...once])
    const steps = (await made.entries()).filter(({ type }) => type === 'step')
    expect(steps.map(({ data, envelope }) => [data, envelope.outcome])).toEqual([
      [{ step: '1.s1', name: 'ask', hash: hashJson('no answer') }, 'failure'],
      [{ step: '1.s2', name: 'nothing', hash: hashJson(null) }, 'success'],
      [{ step: '1.s3', name: 'list', hash: hashJson({ items: [1] }) }, 'success'],
    ])
    for (const { envelope } of steps)
      expect(envelope.identity['uaicp:actor']).toMatchObject({ type: 'agent' })
  })

  test('UAICP-03 of another name in its place is a conflict', async () => {
    const made = await kit()
    const { high, task } = bank(made)
    const named =
      (name: string): Body =>
      async (run) => {
        await run.step(name, () => 1)
        await run.call(high, {})
        return 1
      }
    const first = await park(made.governor, task, named('ask'))
    const tokens = [await made.sign(first.waiting[0]!)]
    const other = await made.restart().resume(first.request_id, task, named('look'), { tokens })
    expect(codesOf(other)).toContain('STATE_CONFLICT')
    expect(made.world.done).toEqual([])
  })
})

describe('a child, when the body of its parent runs again', () => {
  const setUp = async () => {
    const made = await kit()
    const tools = bank(made)
    const inner = { ...tools.task, name: 'inner' }
    return { ...made, ...tools, inner }
  }

  test('UAICP-18 is not run again: its value, or its failure, is that of the first time', async () => {
    const made = await setUp()
    const { inner, task, high, read } = made
    let runs = 0
    const seen: unknown[] = []
    const body: Body = async (run) => {
      const value = await run.child(inner, {}, async (child) => {
        runs += 1
        expect(child.input).toEqual(init.input)
        await child.call(read, {})
        return { n: runs }
      })
      seen.push(value)
      await run
        .child(inner, { input: { part: 2 } }, async (child) => {
          runs += 1
          throw new Error(JSON.stringify(child.input))
        })
        .catch(({ reasons }: { reasons: unknown }) => seen.push(reasons))
      await run.call(high, {})
      return 1
    }
    const first = await park(made.governor, task, body)
    const tokens = [await made.sign(first.waiting[0]!)]
    const next = made.restart({ tasks: [inner] })
    const done = await next.resume(first.request_id, task, body, { tokens })
    // The failure was caught, but nothing is delivered on it.
    expect(codesOf(done)).toEqual(['CHILD_FAIL_SAFE', 'RUN_ERROR'])
    expect(runs).toBe(2)
    const reasons = [
      { code: 'CHILD_FAIL_SAFE', subject: 'inner' },
      { code: 'RUN_ERROR', detail: '{"part":2}' },
    ]
    expect(seen).toEqual([{ n: 1 }, reasons, { n: 1 }, reasons])
  })

  test('UAICP-18 of another task in its place is a conflict', async () => {
    const made = await setUp()
    const { inner, task, high } = made
    const body =
      (of: typeof task): Body =>
      async (run) => {
        await run.child(of, {}, async () => 1)
        await run.call(high, {})
        return 1
      }
    const first = await park(made.governor, task, body(inner))
    const other = { ...inner, name: 'other' }
    const result = await made.restart().resume(first.request_id, task, body(other))
    expect(codesOf(result)).toContain('STATE_CONFLICT')
  })
})

test('UAICP-24 a denial counts more than a token for the same call', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  const { id } = first.waiting[0]!
  const tokens = [await made.sign(first.waiting[0]!)]
  const denials = [{ id, reason: 'no', by: { type: 'human', id: 'pat' } as const }]
  const result = await made.restart().resume(first.request_id, task, body, { tokens, denials })
  expect(result).toMatchObject({
    reasons: [{ code: 'APPROVAL_DENIED', subject: 'high', detail: 'no' }],
  })
  expect(made.world.done).toEqual([])
  const answered = (await made.entries()).filter(({ type }) => type === 'review_answered')
  expect(answered).toMatchObject([{ data: { review: id, answer: 'denied' } }])
  expect(answered[0]?.envelope.identity['uaicp:actor']).toEqual({ type: 'human', id: 'pat' })
})

test('UAICP-24 a person who answers wait, or a desk that breaks, approves nothing', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const later = await made.governor.run(
    task,
    { ...init, approve: async () => ({ type: 'wait' }) },
    body,
  )
  expect(later.outcome).toBe('pending')
  const broken = await made.governor.run(
    task,
    { ...init, approve: () => Promise.reject(new Error('desk is closed')) },
    body,
  )
  expect(broken).toMatchObject({ reasons: [{ code: 'RUN_ERROR', detail: 'desk is closed' }] })
  const abort = new AbortController()
  let ask = (): void => undefined
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const approve = (): Promise<never> => {
    ask()
    return new Promise(() => undefined)
  }
  const stopped = made.governor.run(task, { ...init, signal: abort.signal, approve }, body)
  await asked
  abort.abort()
  expect(codesOf(await stopped)).toEqual(['CANCELLED'])
  expect(made.world.done).toEqual([])
})

test('UAICP-05 a run shows the evidence that its body has, as a list that does not change', async () => {
  const made = await kit()
  const { read, low, task } = bank(made)
  await made.governor.run(task, init, async (run) => {
    expect(run.evidence).toEqual([])
    const first = await run.call(read, {})
    const shown = run.evidence
    const second = await run.call(low, {})
    expect(shown).toEqual([first.evidence])
    expect(Object.isFrozen(shown)).toBe(true)
    expect(run.evidence).toEqual([first.evidence, second.evidence])
    return 1
  })
})

test('UAICP-21 a tool that only has the name of one of the task’s is unknown; a position is no name of a call', async () => {
  const made = await kit()
  const { read, task } = bank(made)
  const double = toolOf(made.world, 'read')
  const codes: string[] = []
  await made.governor.run(task, init, async (run) => {
    for (const call of [run.call(double, {}), run.call(read, {}, { id: '1.1' })])
      await call.catch(({ code }: { code: string }) => codes.push(code))
    await run.call(read, {}, { id: '1.1a' })
    return 1
  })
  expect(codes).toEqual(['TOOL_UNKNOWN', 'STATE_CONFLICT'])
  expect(made.world.done).toEqual(['read {}'])
})

test('UAICP-27 a call that cannot be judged has its entry, and is refused alike when its body runs again', async () => {
  const made = await kit()
  const { high, read, task } = bank(made)
  const double = toolOf(made.world, 'read')
  const said: string[][] = []
  const body: Body = async (run) => {
    const codes: string[] = []
    for (const call of [() => run.call(double, {}), () => run.call(read, { n: 1n } as never)])
      await call().catch(({ code }: { code: string }) => codes.push(code))
    said.push(codes)
    await run.call(high, {})
    return 1
  }
  const first = await park(made.governor, task, body)
  const tokens = [await made.sign(first.waiting[0]!)]
  const done = await made.restart().resume(first.request_id, task, body, { tokens })
  expect(judgedResult(done)).toMatchObject({ state: 'deliver', value: 1 })
  expect(said).toEqual([
    ['TOOL_UNKNOWN', 'SCHEMA_INVALID'],
    ['TOOL_UNKNOWN', 'SCHEMA_INVALID'],
  ])
  const refused = (await made.entries()).filter(({ type }) => type === 'call_refused')
  const envelope = { outcome: 'failure' }
  expect(refused).toMatchObject([
    { envelope, data: { call: '1.1', tool: 'read', risk: 'write_high_risk' } },
    { envelope, data: { call: '1.2', tool: 'read', risk: 'read_only' } },
  ])
})

describe('the deadline and the signal of a run', () => {
  test('UAICP-17 a timer that fires early is set again until the deadline is there', async () => {
    const made = await kit()
    const { time } = made
    const governor = made.restart({ timer: (ms, fire) => time.timer(Math.min(ms, 10), fire) })
    let signal: AbortSignal | undefined
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const task = taskOf({ tools: [], limits: { deadlineMs: 25 } })
    const running = governor.run(task, init, (run) => {
      signal = run.signal
      begin()
      return new Promise<number>(() => undefined)
    })
    await begun
    await time.advance(24)
    expect(signal?.aborted).toBe(false)
    await time.advance(1)
    expect(codesOf(await running)).toEqual(['DEADLINE_EXCEEDED'])
    expect(signal?.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })

  test('UAICP-17 the first reason to stop is the one that is told', async () => {
    const made = await kit()
    const abort = new AbortController()
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const slow = toolOf(made.world, 'slow', {
      run: () => {
        begin()
        return new Promise(() => undefined)
      },
    })
    const task = taskOf({ tools: [slow], limits: { deadlineMs: 10 } })
    const given = { ...init, signal: abort.signal }
    const running = made.governor.run(task, given, async (run) => (await run.call(slow, {})).result)
    await begun
    await made.time.advance(10)
    abort.abort()
    await made.time.advance(1001)
    expect(codesOf(await running)).toEqual(['DEADLINE_EXCEEDED'])
  })

  test('UAICP-17 nothing waits for them any more once the run is over', async () => {
    const made = await kit()
    const timers = new Set<number>()
    let count = 0
    const governor = made.restart({
      timer: (ms, fire) => {
        const id = ++count
        timers.add(id)
        const cancel = made.time.timer(ms, fire)
        return () => {
          timers.delete(id)
          cancel()
        }
      },
    })
    const { signal } = new AbortController()
    const { read, low } = bank(made)
    const task = taskOf({ tools: [read, low], limits: { deadlineMs: 1000 } })
    await governor.run(task, { ...init, signal }, async (run) => {
      await run.call(read, {})
      return (await run.call(low, {})).result
    })
    expect(count).toBeGreaterThan(1)
    expect(timers.size).toBe(0)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('UAICP-18 a child that was delivered is not stopped with its parent; one that runs is', async () => {
    const made = await kit()
    const abort = new AbortController()
    const inner = taskOf({ name: 'inner', tools: [] })
    const signals: AbortSignal[] = []
    const given = { ...init, signal: abort.signal }
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const running = made.governor.run(taskOf({ tools: [] }), given, async (run) => {
      await run.child(inner, {}, async (child) => {
        signals.push(child.signal)
        return 1
      })
      return run.child(inner, {}, (child) => {
        signals.push(child.signal)
        begin()
        return new Promise<number>(() => undefined)
      })
    })
    await begun
    abort.abort()
    expect(codesOf(await running)).toContain('CANCELLED')
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
  })
})

describe('steps of a loop of one’s own', () => {
  async function opened(made: Kit) {
    const { task } = bank(made)
    const answer = await made.governor.open(task, init)
    return { task, id: answer.type === 'opened' ? answer.request_id : '' }
  }

  test('UAICP-12 a call is settled once, a doubt only where there is one, and no unknown request is found', async () => {
    const made = await kit()
    const { governor } = made
    const { id } = await opened(made)
    const conflict = { code: 'STATE_CONFLICT' }
    const result = { type: 'result', value: 1 } as const
    await expect(governor.settle(id, 'a', result)).rejects.toMatchObject(conflict)
    await governor.admit(id, { id: 'a', tool: 'read', args: {} })
    await governor.settle(id, 'a', result)
    await expect(governor.settle(id, 'a', result)).rejects.toMatchObject(conflict)
    for (const call of ['a', 'nobody'])
      await expect(governor.settleInDoubt(id, call, 'absent')).rejects.toMatchObject(conflict)
    const nobody = '0190aaaa-0000-7000-8000-00000000dead'
    expect(await governor.state(nobody)).toBeUndefined()
    const missing = { ...conflict, reasons: [{ subject: nobody, detail: 'unknown request' }] }
    await expect(governor.deliver(nobody, 1)).rejects.toMatchObject(missing)
    await expect(governor.cancel(nobody)).rejects.toMatchObject(missing)
    expect((await governor.state(id))?.calls.get('a')).toMatchObject({ status: 'done' })
  })

  test('UAICP-29 what a person found of a call in doubt is recorded as found by a person', async () => {
    const made = await kit()
    const { id, task } = await opened(made)
    for (const call of ['x', 'y'])
      await made.governor.admit(id, { id: call, tool: 'low', args: { call } })
    const next = made.restart({ tasks: [task] })
    expect(await next.recover()).toMatchObject([{ request_id: id, inDoubt: ['x', 'y'] }])
    await next.settleInDoubt(id, 'x', 'applied')
    await next.settleInDoubt(id, 'y', 'absent')
    const settled = (await made.entries()).filter(({ type }) => type === 'call_settled').slice(2)
    expect(settled.map(({ data }) => [data['call'], data['effect'], data['settled_by']])).toEqual([
      ['x', 'applied', 'person'],
      ['y', 'absent', 'person'],
    ])
    const again = await next.admit(id, { id: 'x', tool: 'low', args: { call: 'x' } })
    expect(again).toMatchObject({ type: 'deny', reasons: [{ code: 'TOOL_IN_DOUBT' }] })
  })

  test('UAICP-34 cancel says why, also to a run that is in progress, and waits for its end', async () => {
    const made = await kit()
    const { low, task } = bank(made)
    const why = { code: 'POLICY_BLOCKED', subject: 'office', detail: 'closed' } as const
    const { id } = await opened(made)
    expect(await made.governor.cancel(id, why)).toMatchObject({ reasons: [why] })
    expect(await made.governor.cancel(id)).toMatchObject({ reasons: [why] })
    const request_id = '0190aaaa-0000-7000-8000-000000000001'
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const running = made.governor.run(task, { ...init, request_id }, async (run) => {
      await run.call(low, {})
      begin()
      return new Promise<number>(() => undefined)
    })
    await begun
    const resumed = made.governor.resume(request_id, task, async () => 1)
    await expect(resumed).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    const cancelled = await made.governor.cancel(request_id, why)
    expect(cancelled).toMatchObject({ reasons: [why], undo: [{ tool: 'low' }] })
    expect(await running).toMatchObject({ reasons: [why] })
  })
})

test('UAICP-12 whoever keeps a run that is over can do nothing with it', async () => {
  const made = await kit()
  const { read, task } = bank(made)
  let kept: Run | undefined
  await made.governor.run(task, init, async (run) => {
    kept = run
    return 1
  })
  const before = (await made.entries()).length
  const over = { code: 'STATE_CONFLICT' }
  await expect(kept!.plan({})).rejects.toMatchObject(over)
  await expect(kept!.native('search')).rejects.toMatchObject(over)
  await expect(kept!.step('s', () => 1)).rejects.toMatchObject(over)
  await expect(kept!.call(read, {})).rejects.toMatchObject(over)
  await expect(kept!.child(task, {}, async () => 1)).rejects.toMatchObject(over)
  expect(() => kept!.chunk('x')).toThrow(expect.objectContaining(over))
  expect(await made.entries()).toHaveLength(before)
})

test('UAICP-34 a signal that was aborted before the run lets nothing happen', async () => {
  const made = await kit()
  const { low, task } = bank(made)
  const signal = AbortSignal.abort()
  const result = await made.governor.run(task, { ...init, signal }, async (run) => {
    await run.call(low, {})
    return 1
  })
  expect(codesOf(result)).toEqual(['CANCELLED'])
  expect(made.world.done).toEqual([])
})

test('UAICP-17 a child that opens while its parent is stopped is stopped, too', async () => {
  const made = await kit()
  const { low } = bank(made)
  const abort = new AbortController()
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const governor = made.restart({
    audit: {
      read: made.log.read,
      append: (entry, options) => {
        if (entry.request_id !== request_id) abort.abort()
        return made.log.append(entry, options)
      },
    },
  })
  let stopped: boolean | undefined
  const inner = taskOf({ name: 'inner', tools: [low] })
  const given = { ...init, request_id, signal: abort.signal }
  const result = await governor.run(taskOf({ tools: [] }), given, (run) =>
    run.child(inner, {}, async (child) => {
      stopped = child.signal.aborted
      await child.call(low, {})
      return 1
    }),
  )
  expect(codesOf(result)).toContain('CANCELLED')
  expect(stopped).toBe(true)
  expect(made.world.done).toEqual([])
})

test('UAICP-13 of two who resume a request at the same time, one is told that it is worked on', async () => {
  const made = await kit()
  const { high, task } = bank(made)
  const body: Body = async (run) => {
    await run.call(high, {})
    return 1
  }
  const { request_id } = await park(made.governor, task, body)
  const next = made.restart()
  const both = [next.resume(request_id, task, body), next.resume(request_id, task, body)]
  const ends = await Promise.allSettled(both)
  expect(ends.filter(({ status }) => status === 'fulfilled')).toMatchObject([
    { value: { outcome: 'pending', request_id } },
  ])
  expect(ends.filter(({ status }) => status === 'rejected')).toMatchObject([
    { reason: { code: 'STATE_CONFLICT', message: expect.stringContaining('worked on') as string } },
  ])
})
