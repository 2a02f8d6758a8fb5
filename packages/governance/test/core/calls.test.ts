import { describe, expect, test } from 'vitest'
import {
  type Actor,
  hashJson,
  memoryPayloads,
  type PayloadStore,
  type Policy,
  rules,
  type Run,
} from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

const low = 'write_low_risk' as const
const high = 'write_high_risk' as const

/** Opens a request for a task and returns its id. */
async function open({ governor }: Kit, task: ReturnType<typeof taskOf>): Promise<string> {
  const opened = await governor.open(task, init)
  return opened.type === 'opened' ? opened.request_id : ''
}

describe('limits', () => {
  test('UAICP-17 no call begins at or after the deadline', async () => {
    const made = await kit()
    const { governor, world, time } = made
    const id = await open(
      made,
      taskOf({ tools: [toolOf(world, 'read')], limits: { deadlineMs: 100 } }),
    )
    await time.advance(99)
    expect(await governor.admit(id, { id: 'a', tool: 'read', args: {} })).toMatchObject({
      type: 'allow',
    })
    await time.advance(1)
    expect(await governor.admit(id, { id: 'b', tool: 'read', args: {} })).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'DEADLINE_EXCEEDED' }],
    })
  })

  test('UAICP-17 the ceiling holds for the risk that the arguments of a call give it', async () => {
    const { governor, world, yes } = await kit()
    const tool = toolOf(world, 'tool', {
      raise: ({ amount }) => (Number(amount) > 10 ? high : low),
      rollback: undoBy('tool'),
    })
    const task = taskOf({ tools: [tool, toolOf(world, 'undo_tool')], limits: { ceiling: low } })
    const attempt = (amount: number) =>
      governor.run(task, { ...init, approve: yes }, async (run) => {
        await run.call(tool, { amount })
        return 1
      })
    expect((await attempt(1)).state).toBe('deliver')
    expect(codesOf(await attempt(11))).toContain('RISK_CEILING')
    expect(world.done).toEqual(['tool {"amount":1}'])
  })

  test('UAICP-17 a write that runs counts once', async () => {
    const { governor, world } = await kit()
    let calls = 0
    let both = (): void => undefined
    const together = new Promise<void>((resolve) => (both = resolve))
    const write = toolOf(world, 'write', {
      risk: low,
      run: () => {
        if (++calls === 2) both()
        return together
      },
    })
    const task = taskOf({ tools: [write], limits: { toolCalls: 2 } })
    const result = await governor.run(task, init, async (run) => {
      const first = run.call(write, { n: 1 })
      while (calls === 0) await new Promise((resolve) => setImmediate(resolve))
      // The intent of the first write is in the log, and it still runs.
      await Promise.race([run.call(write, { n: 2 }), first])
      await first
      return 1
    })
    expect(result.state).toBe('deliver')
    expect(world.count('write')).toBe(2)
  })

  test('UAICP-17 a call that is made again after it was undone counts while it is judged', async () => {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
    const read = toolOf(world, 'read')
    const task = taskOf({
      tools: [write, read, toolOf(world, 'undo_write', { risk: low })],
      limits: { toolCalls: 3 },
      repair: { max: 1, to: 'execute' },
    })
    const result = await governor.run(task, init, async (run) => {
      if (run.attempt === 1) {
        await run.call(write, {}, { id: 'w' })
        throw new Error('again')
      }
      await Promise.all([
        run.call(write, {}, { id: 'w' }),
        run.call(read, { n: 1 }),
        run.call(read, { n: 2 }),
      ])
      return 1
    })
    expect(codesOf(result)).toContain('BUDGET_EXCEEDED')
    expect(world.count('read')).toBe(1)
  })
})

describe('the risk of a call', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['answers what is no risk', () => 'harmless' as never],
  ] as const)('UAICP-21 a call whose raise() %s does not run', async (_name, raise) => {
    const { governor, world, entries } = await kit()
    const tool = toolOf(world, 'tool', { raise })
    const result = await governor.run(taskOf({ tools: [tool] }), init, async (run) => {
      await run.call(tool, {})
      return 1
    })
    expect(codesOf(result)).toContain('RISK_UNDECLARED')
    expect(world.done).toEqual([])
    expect((await entries()).filter(({ type }) => type === 'call_refused')).toHaveLength(1)
  })

  test('UAICP-27 the refusal of an unknown tool is logged: highest risk, name cut to fit the log', async () => {
    const made = await kit()
    const id = await open(made, taskOf({ tools: [] }))
    const tool = 'x'.repeat(2000)
    const admission = await made.governor.admit(id, { id: 'a', tool, args: {} })
    expect(admission).toMatchObject({ type: 'deny', reasons: [{ code: 'TOOL_UNKNOWN' }] })
    const [refused] = (await made.entries()).filter(({ type }) => type === 'call_refused')
    expect(refused).toMatchObject({ envelope: { outcome: 'failure' }, data: { risk: high } })
    expect(String(refused?.data['tool']).length).toBeLessThan(600)
  })
})

describe('the arguments of a call', () => {
  test('UAICP-04 policies, rollback and tool get one copy that none of them can change', async () => {
    const seen: unknown[] = []
    const policy: Policy = {
      id: 'p',
      hash: hashJson('p'),
      decide: ({ args }) => {
        seen.push(args)
        return { effect: 'allow' }
      },
    }
    const { governor, world } = await kit({ policy })
    const write = toolOf(world, 'write', {
      risk: low,
      rollback: (args) => {
        seen.push(args)
        return { type: 'tool_call', target: 'undo_write', payload: {} }
      },
      run: (args) => void seen.push(args),
    })
    const given = { deep: { n: 1 } }
    const task = taskOf({ tools: [write, toolOf(world, 'undo_write')] })
    await governor.run(task, init, async (run) => (await run.call(write, given)).result)
    expect(seen).toHaveLength(3)
    for (const args of seen as (typeof given)[]) {
      expect(args).toBe(seen[0])
      expect(Object.isFrozen(args) && Object.isFrozen(args.deep)).toBe(true)
    }
    expect(Object.isFrozen(given)).toBe(false)
  })
})

describe('the id of a call', () => {
  test('UAICP-27 an id that the log cannot hold is refused', async () => {
    const made = await kit()
    const id = await open(made, taskOf({ tools: [toolOf(made.world, 'read')] }))
    for (const call of ['x'.repeat(600), 'a\ud800']) {
      await expect(
        made.governor.admit(id, { id: call, tool: 'read', args: {} }),
      ).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    }
    expect((await made.entries()).some(({ type }) => type.startsWith('call_'))).toBe(false)
  })

  test('UAICP-05 a later call cannot take the id of a call that was made', async () => {
    const made = await kit()
    const { governor, world } = made
    const id = await open(made, taskOf({ tools: [toolOf(world, 'read'), toolOf(world, 'other')] }))
    const admit = (tool: string, args: object) =>
      governor.admit(id, { id: 'a', tool, args: args as never })
    await admit('read', {})
    await expect(admit('read', {})).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    await governor.settle(id, 'a', { type: 'result', value: 1 })
    for (const [tool, args] of [
      ['nobody', {}],
      ['read', { n: 1n }],
      ['read', { n: 2 }],
      ['other', {}],
    ] as const) {
      await expect(admit(tool, args)).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    }
    expect(await admit('read', {})).toMatchObject({ type: 'replay', result: 1 })
    expect(await governor.deliver(id, 1)).toMatchObject({
      type: 'delivered',
      result: { evidence: [{ source: 'read', payload: 1 }] },
    })
  })

  test('UAICP-05 calls that end at the same time have each its own evidence, also over a store that takes its time', async () => {
    const stored = memoryPayloads()
    const payloads: PayloadStore = {
      ...stored,
      put: async (...given) => {
        await new Promise((resolve) => setTimeout(resolve, 0))
        await stored.put(...given)
      },
    }
    const { governor, world } = await kit({ payloads })
    const read = toolOf(world, 'read', { run: ({ n }) => n })
    const result = await governor.run(taskOf({ tools: [read] }), init, async (run) => {
      await Promise.all([1, 2, 3].map((n) => run.call(read, { n })))
      return 'all'
    })
    const evidence = result.state === 'deliver' ? result.evidence : []
    expect(evidence.map(({ payload }) => Number(payload)).toSorted()).toEqual([1, 2, 3])
    expect(new Set(evidence.map(({ evidence_id }) => evidence_id)).size).toBe(3)
  })

  test('UAICP-05 a call that is made again gives its result, though its evidence is something else', async () => {
    const made = await kit()
    const { governor, world, restart } = made
    const read = toolOf(world, 'read', {
      evidence: () => ({ type: 'source_citation', payload: { page: 7 } }),
    })
    const task = taskOf({ tools: [read] })
    const id = await open(made, task)
    const call = { id: 'a', tool: 'read', args: {} }
    await governor.admit(id, call)
    await governor.settle(id, 'a', { type: 'result', value: { balance: 1 } })
    for (const process of [governor, restart({ tasks: [task] })]) {
      expect(await process.admit(id, call)).toMatchObject({
        type: 'replay',
        result: { balance: 1 },
        evidence: { evidence_type: 'source_citation', payload: { page: 7 } },
      })
    }
  })

  test('UAICP-34 a call that is made again in a later attempt has another idempotency key', async () => {
    const { governor, world } = await kit()
    const keys: string[] = []
    const note = (_args: unknown, { idempotencyKey }: { idempotencyKey: string }) =>
      void keys.push(idempotencyKey)
    const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write'), run: note })
    const undo = toolOf(world, 'undo_write', { risk: low, run: note })
    const task = taskOf({ tools: [write, undo], repair: { max: 1 } })
    const result = await governor.run(task, init, async (run) => {
      await run.call(write, {}, { id: 'w' })
      if (run.attempt === 1) throw new Error('again')
      return run.request_id
    })
    const id = 'value' in result ? result.value : ''
    expect(keys).toEqual([`${id}/w@1`, `${id}/w@1:undo`, `${id}/w@2`])
  })
})

test('UAICP-25 the rollback that people were shown is the one that is kept', async () => {
  const { governor, world, yes, entries } = await kit()
  let asked = 0
  const shown: unknown[] = []
  const pay = toolOf(world, 'pay', {
    risk: high,
    rollback: () => ({ type: 'tool_call', target: 'undo_pay', payload: { ticket: ++asked } }),
  })
  const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
  const approve: typeof yes = (request) => {
    shown.push(request.action.rollback)
    return yes(request)
  }
  const result = await governor.run(task, { ...init, approve }, async (run) => {
    await run.call(pay, {})
    return 1
  })
  expect(result.state).toBe('deliver')
  const [intent] = (await entries()).filter(({ type }) => type === 'call_started')
  expect([intent?.envelope.rollback_action]).toEqual(shown)
})

test('UAICP-27 the intent of an approved write names its approval, its digest and its policy', async () => {
  const { governor, world, yes, entries } = await kit()
  const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
  const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
  const asked: { id: string; digest: string; action: { policy_hash: string } }[] = []
  const approve: typeof yes = (request) => {
    asked.push(request)
    return yes(request)
  }
  await governor.run(task, { ...init, approve }, async (run) => (await run.call(pay, {})).result)
  const [request] = asked
  const [intent] = (await entries()).filter(({ type }) => type === 'call_started')
  expect(intent?.data).toMatchObject({
    review: request?.id,
    digest: request?.digest,
    policy_hash: request?.action.policy_hash,
  })
})

test('UAICP-23 a policy on trial is in the log of a call that a person denied, too', async () => {
  const trial: Policy = {
    id: 'trial',
    hash: hashJson('trial'),
    mode: 'shadow',
    decide: () => undefined,
  }
  const { governor, world, entries } = await kit({
    policy: [rules([{ when: () => true, effect: 'review' }]), trial],
  })
  const write = toolOf(world, 'write', { risk: low })
  const deny = async () => ({ type: 'deny', reason: 'no' }) as const
  const body = async (run: Run) => (await run.call(write, {})).result
  const result = await governor.run(taskOf({ tools: [write] }), { ...init, approve: deny }, body)
  expect(codesOf(result)).toContain('APPROVAL_DENIED')
  const [refused] = (await entries()).filter(({ type }) => type === 'call_refused')
  // A policy that says nothing would not have allowed it.
  expect(refused?.data['shadow']).toEqual([{ policy: 'trial', effect: 'deny' }])
})

test('UAICP-27 a tool of the vendor that policy allows is logged as uncertain, a refused one as failed', async () => {
  const policy = rules([
    { when: ({ tool }) => tool === 'search', effect: 'allow' },
    { when: ({ tool }) => tool === 'shell', effect: 'review' },
    {
      when: ({ tool }) => tool === 'mail',
      effect: 'deny',
      reasons: [{ code: 'TRUST_TIER_BLOCKED' }],
    },
  ])
  const { governor, entries } = await kit({ policy })
  const codes: unknown[] = []
  await governor.run(taskOf({ tools: [] }), init, async (run) => {
    for (const tool of ['search', 'shell', 'mail']) {
      await run.native(tool).catch(({ reasons }: { reasons: { code: string }[] }) => {
        codes.push(reasons.map(({ code }) => code))
      })
    }
    return 1
  })
  expect(codes).toEqual([['TOOL_UNGOVERNED'], ['TOOL_UNGOVERNED', 'TRUST_TIER_BLOCKED']])
  const logged = (await entries()).filter(({ type }) => type === 'native_tool')
  expect(
    logged.map(({ data, envelope }) => [data['tool'], data['allowed'], envelope.outcome]),
  ).toEqual([
    ['search', true, 'uncertain'],
    ['shell', false, 'failure'],
    ['mail', false, 'failure'],
  ])
})

describe('a decision', () => {
  test.each([
    ['a quorum of nobody', { effect: 'review', quorum: 0 }],
    ['a quorum of one and a half', { effect: 'review', quorum: 1.5 }],
    ['a quorum as text', { effect: 'review', quorum: '2' }],
    ['reasons that are no list', { effect: 'allow', reasons: 'because' }],
    ['reasons without a known code', { effect: 'allow', reasons: [{ code: 'FINE' }] }],
  ])('UAICP-23 with %s is none, so the write does not run', async (_name, said) => {
    const policy: Policy = { id: 'p', hash: hashJson('p'), decide: () => said as never }
    const { governor, world, yes } = await kit({ policy })
    const write = toolOf(world, 'write', { risk: low })
    const result = await governor.run(
      taskOf({ tools: [write] }),
      { ...init, approve: yes },
      async (run) => (await run.call(write, {})).result,
    )
    expect(codesOf(result)).toContain('POLICY_ERROR')
    expect(world.done).toEqual([])
  })

  test('UAICP-24 is asked for again when the time of its request is over', async () => {
    const made = await kit({ limits: { approvalTtlMs: 1000 } })
    const { governor, world, time, yes } = made
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const id = await open(made, taskOf({ tools: [pay, toolOf(world, 'undo_pay')] }))
    const call = { id: 'a', tool: 'pay', args: {} }
    const ask = async () => {
      const asked = await governor.admit(id, call)
      if (asked.type !== 'review') throw new Error(asked.type)
      return asked.request
    }
    const first = await ask()
    expect(Date.parse(first.expires_at)).toBe(time.now() + 1000)
    await time.advance(999)
    expect((await ask()).id).toBe(first.id)
    await time.advance(1)
    const second = await ask()
    expect(second.id).not.toBe(first.id)
    expect(await governor.admit(id, call, await yes(second))).toMatchObject({ type: 'allow' })
  })

  test('UAICP-24 nobody is asked for longer than the run may last', async () => {
    const made = await kit({ limits: { approvalTtlMs: 1000 } })
    const { governor, world, time } = made
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const tools = [pay, toolOf(world, 'undo_pay')]
    const id = await open(made, taskOf({ tools, limits: { deadlineMs: 500 } }))
    const asked = await governor.admit(id, { id: 'a', tool: 'pay', args: {} })
    if (asked.type !== 'review') throw new Error(asked.type)
    expect(Date.parse(asked.request.expires_at)).toBe(time.now() + 500)
  })

  test('UAICP-29 a denial is logged as that of whoever denied, unless that is an agent', async () => {
    const pat = { type: 'human', id: 'pat' } as const
    const robot = { type: 'system', id: 'rota' } as const
    const unknown = { type: 'human', id: 'unknown' } as const
    const governorItself = { type: 'system', id: 'governor.test' } as const
    const answers: [by: Actor | undefined, logged: Actor][] = [
      [pat, pat],
      [robot, robot],
      [undefined, unknown],
      // An agent is never the actor of an answer: not the acting one, under whatever type, and no other.
      [{ type: 'agent', id: 'agent-1' }, governorItself],
      [{ type: 'human', id: 'agent-1' }, governorItself],
      [{ type: 'agent', id: 'agent-2' }, governorItself],
    ]
    for (const [given, logged] of answers) {
      const { governor, world, entries } = await kit()
      const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
      const deny = async () => ({ type: 'deny', reason: 'too much', by: given }) as const
      const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
      await governor.run(task, { ...init, approve: deny }, async (run) => {
        await run.call(pay, {})
        return 1
      })
      const [answer] = (await entries()).filter(({ type }) => type === 'review_answered')
      expect(answer).toMatchObject({
        data: { answer: 'denied', reasons: [{ code: 'APPROVAL_DENIED', detail: 'too much' }] },
        envelope: { outcome: 'failure' },
      })
      expect(answer?.envelope.identity['uaicp:actor']).toEqual(logged)
    }
  })

  test('UAICP-24 a grant does not cover a call that a person found not to have happened', async () => {
    const approver = { id: 'pat', issuer: 'i', jti: 'j', type: 'human' as const }
    const redeemed = async () => ({ ok: true as const, approvers: [approver] })
    const made = await kit({
      approvals: { redeem: redeemed, checkGrant: redeemed },
      policy: rules([{ when: () => true, effect: 'allow', grant: 'standing' }]),
    })
    const { governor, world } = made
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const id = await open(made, taskOf({ tools: [pay, toolOf(world, 'undo_pay')] }))
    const call = { id: 'a', tool: 'pay', args: {} }
    expect(await governor.admit(id, call)).toMatchObject({ type: 'allow' })
    const lost = { type: 'error', reasons: [{ code: 'TOOL_TIMEOUT' }], effect: 'in_doubt' } as const
    await governor.settle(id, 'a', lost)
    await governor.settleInDoubt(id, 'a', 'absent')
    expect(await governor.admit(id, call)).toMatchObject({ type: 'review' })
  })
})

test('UAICP-23 a preview says what admit would say, and leaves nothing in the log', async () => {
  const policy = rules([
    { when: ({ tool }) => tool === 'secret' || tool === 'bare', effect: 'deny' },
    { when: () => true, effect: 'allow' },
  ])
  const { governor, world, entries } = await kit({ policy })
  const tools = [
    toolOf(world, 'secret'),
    toolOf(world, 'write', { risk: low }),
    toolOf(world, 'bare', { risk: low }),
    toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') }),
    toolOf(world, 'undo_pay'),
    toolOf(world, 'stuck', { risk: high }),
  ]
  const says = (tool: string, limits = {}) =>
    governor.preview(taskOf({ tools, limits }), init, { id: 'a', tool, args: {} })
  // A read needs no policy.
  expect(await says('secret')).toBe('allow')
  expect(await says('write')).toBe('allow')
  expect(await says('bare')).toBe('deny')
  // A policy cannot stand in for a person, nor a person for a rollback.
  expect(await says('pay')).toBe('review')
  expect(await says('stuck')).toBe('deny')
  expect(await says('pay', { ceiling: low })).toBe('deny')
  expect(await says('write', { toolCalls: 0 })).toBe('deny')
  expect(await says('nobody')).toBe('deny')
  expect(await entries()).toEqual([])
})

test('UAICP-27 a review is logged in full: why it is asked for, which tokens failed and which approved', async () => {
  const why = [{ code: 'TRUST_TIER_BLOCKED' as const, subject: 's', detail: 'd'.repeat(5000) }]
  const policy: Policy = {
    id: 'p',
    hash: hashJson('p'),
    decide: () => ({ effect: 'review', reasons: why }),
  }
  const puts: string[] = []
  const made = await kit({ policy })
  const governor = made.restart({
    payloads: {
      get: made.payloads.get,
      put: (hash, text, options) => {
        if (options?.durable) puts.push(text)
        return made.payloads.put(hash, text)
      },
    },
  })
  const pay = toolOf(made.world, 'pay', { risk: high, rollback: undoBy('pay') })
  const id = await open(
    { ...made, governor },
    taskOf({ tools: [pay, toolOf(made.world, 'undo_pay')] }),
  )
  const call = { id: 'a', tool: 'pay', args: { n: 1 } }
  const asked = await governor.admit(id, call)
  if (asked.type !== 'review') throw new Error(asked.type)
  // Whoever is asked can be shown the arguments, also after a crash.
  expect(puts).toEqual(['{"n":1}'])
  const own = await made.sign(asked.request, 'agent-1')
  const rejected = await governor.admit(id, call, { type: 'approve', tokens: [own] })
  expect(rejected).toMatchObject({ type: 'review', rejected: { code: 'APPROVAL_SELF' } })
  const token = await made.sign(asked.request)
  await governor.admit(id, call, { type: 'approve', tokens: [token] })
  const log = (await made.entries(id)).filter(({ type }) => type.startsWith('review_'))
  expect(log.map(({ data, envelope }) => [data['answer'], envelope.outcome])).toEqual([
    [undefined, 'pending'],
    ['rejected', 'failure'],
    ['approved', 'success'],
  ])
  const [request, failed, approved] = log
  expect(request?.data['reasons']).toMatchObject([{ code: 'TRUST_TIER_BLOCKED', subject: 's' }])
  expect(JSON.stringify(request?.data['reasons']).length).toBeLessThan(700)
  expect(failed?.data['reasons']).toMatchObject([{ code: 'APPROVAL_SELF' }])
  // The log names who came with the refused token, although the governor made the entry.
  expect(failed?.data['refused']).toMatchObject([
    { approver: 'agent-1', issuer: expect.any(String), code: 'APPROVAL_SELF', signed: true },
  ])
  expect(failed?.envelope.identity['uaicp:actor']).toMatchObject({ type: 'system' })
  const { jti } = JSON.parse(atob(token.split('.')[1]!)) as { jti: string }
  expect(approved?.data['tokens']).toEqual([jti])
})

test('UAICP-24 an approvals port that does not clearly say yes has said no', async () => {
  const approver = { id: 'pat', issuer: 'i', jti: 'j', type: 'human' as const }
  const broken = () => {
    throw new Error('down')
  }
  for (const ok of ['yes', 1, undefined, broken]) {
    const redeem = async () => (ok === broken ? broken() : { ok, approvers: [approver] })
    const { governor, world } = await kit({ approvals: { redeem: redeem as never } })
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const approve = async () => ({ type: 'approve', tokens: ['t'] }) as const
    const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
    const result = await governor.run(task, { ...init, approve }, async (run) => {
      await run.call(pay, {})
      return 1
    })
    expect(codesOf(result)).toContain('APPROVAL_INVALID')
    expect(world.done).toEqual([])
  }
})

test('UAICP-25 a rollback of a type that only every object has is none', async () => {
  const { governor, world, yes } = await kit({ undoers: { http: () => undefined } })
  for (const type of ['toString', 'constructor', '__proto__']) {
    const pay = toolOf(world, 'pay', {
      risk: high,
      rollback: () => ({ type, target: 'x', payload: {} }),
    })
    const result = await governor.run(
      taskOf({ tools: [pay] }),
      { ...init, approve: yes },
      async (run) => (await run.call(pay, {})).result,
    )
    expect(codesOf(result)).toContain('ROLLBACK_REQUIRED')
  }
  expect(world.done).toEqual([])
})

test('UAICP-27 after the log has failed, a step of the request is refused, even a read', async () => {
  const made = await kit()
  let isDown = false
  const governor = made.restart({
    audit: {
      read: made.log.read,
      append: (entry, options) => {
        if (isDown) throw new Error('disk full')
        return made.log.append(entry, options)
      },
    },
  })
  const id = await open({ ...made, governor }, taskOf({ tools: [toolOf(made.world, 'read')] }))
  await governor.admit(id, { id: 'a', tool: 'read', args: {} })
  isDown = true
  const settled = governor.settle(id, 'a', { type: 'result', value: 1 })
  await expect(settled).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
  isDown = false
  const next = governor.admit(id, { id: 'b', tool: 'read', args: {} })
  await expect(next).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
})

test('UAICP-10 a write that was judged while its attempt failed does not start in the next one', async () => {
  let answer = (): void => undefined
  let ask = (): void => undefined
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const policy: Policy = {
    id: 'p',
    hash: hashJson('p'),
    decide: () => {
      ask()
      return new Promise((resolve) => (answer = () => resolve({ effect: 'allow' })))
    },
  }
  const made = await kit({ policy })
  const { governor, world } = made
  const write = toolOf(world, 'write', { risk: low })
  const id = await open(made, taskOf({ tools: [write], repair: { max: 1 } }))
  const admitted = governor.admit(id, { id: 'w', tool: 'write', args: {} })
  const refused = expect(admitted).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  await asked
  expect(await governor.fail(id, [{ code: 'RUN_ERROR' }])).toMatchObject({ type: 'repair' })
  answer()
  await refused
  expect((await made.entries()).some(({ type }) => type === 'call_started')).toBe(false)
  // Nothing of it is left that the next attempt would have to wait for.
  expect(await governor.deliver(id, 1)).toMatchObject({ type: 'delivered' })
})

test('UAICP-24 an approval that was recorded before a crash still counts, without its spent token', async () => {
  const made = await kit()
  const { world, yes, log, restart } = made
  const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
  const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
  const id = await open(made, task)
  const call = { id: 'p', tool: 'pay', args: { n: 1 } }
  const asked = await made.governor.admit(id, call)
  if (asked.type !== 'review') throw new Error(asked.type)
  const dying = restart({
    tasks: [task],
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (entry.line.includes('"call_started"')) throw new Error('the machine is gone')
        return log.append(entry, options)
      },
    },
  })
  await expect(dying.admit(id, call, await yes(asked.request))).rejects.toThrow()
  const next = restart({ tasks: [task] })
  expect(await next.admit(id, call)).toMatchObject({ type: 'allow', call: { args: { n: 1 } } })
  const [intent] = (await made.entries()).filter(({ type }) => type === 'call_started')
  expect(intent?.data).toMatchObject({ review: asked.request.id, digest: asked.request.digest })
  // Other arguments are another action: the approval is not for them.
  const other = await restart({ tasks: [task] }).admit(id, { ...call, id: 'q', args: { n: 2 } })
  expect(other.type).toBe('review')
})

test('UAICP-27 the log of a review has all that people were asked about, before they are', async () => {
  const reasons = [{ code: 'TRUST_TIER_BLOCKED', subject: 's', detail: 'd' }] as const
  const rule = { when: () => true, effect: 'review', quorum: 2, fourEyes: true, reasons } as const
  const made = await kit({ policy: rules([rule]) })
  const { world, governor } = made
  const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
  const id = await open(made, taskOf({ tools: [pay, toolOf(world, 'undo_pay')] }))
  const asked = await governor.admit(id, { id: 'p', tool: 'pay', args: { n: 1 } })
  if (asked.type !== 'review') throw new Error(asked.type)
  const { request } = asked
  const entries = await made.entries()
  const entry = entries.find(({ type }) => type === 'review_requested')
  expect(request).toMatchObject({
    id: `${id}#${entries.findIndex(({ type }) => type === 'review_requested')}`,
    quorum: 2,
    excluded: ['agent-1', 'uma'],
  })
  expect(entry?.data).toEqual({
    review: request.id,
    call: 'p',
    tool: 'pay',
    risk: high,
    args_hash: hashJson({ n: 1 }),
    digest: request.digest,
    policy_hash: request.action.policy_hash,
    quorum: 2,
    excluded: ['agent-1', 'uma'],
    expires_at: request.expires_at,
    reasons,
  })
  expect(entry?.envelope).toMatchObject({
    outcome: 'pending',
    rollback_action: { type: 'tool_call', target: 'undo_pay', payload: { n: 1 } },
  })
})

describe('a preview', () => {
  test('UAICP-22 of a read asks no policy; of a write it says what admit would say, and writes nothing', async () => {
    let asked = 0
    const effects: Record<string, 'allow' | 'deny' | 'review'> = {
      allowed: 'allow',
      denied: 'deny',
      reviewed: 'review',
      high: 'allow',
      never: 'deny',
      bare: 'allow',
    }
    const rollbacks: unknown[] = []
    const policy: Policy = {
      id: 'p',
      hash: hashJson('p'),
      decide: ({ tool, rollback }) => {
        asked += 1
        rollbacks.push(rollback)
        return { effect: effects[tool]! }
      },
    }
    const made = await kit({ policy })
    const { world } = made
    const task = taskOf({
      tools: [
        toolOf(world, 'read'),
        ...['allowed', 'denied', 'reviewed'].map((name) => toolOf(world, name, { risk: low })),
        toolOf(world, 'high', { risk: high, rollback: { tool: 'allowed' } }),
        toolOf(world, 'never', { risk: high, rollback: { tool: 'allowed' } }),
        toolOf(world, 'bare', { risk: high }),
      ],
    })
    const preview = (tool: string, args = {}, given = {}, of = task) =>
      made.governor.preview(of, { ...init, ...given }, { id: 'a', tool, args })
    expect(await preview('read')).toBe('allow')
    expect(asked).toBe(0)
    expect(await preview('allowed')).toBe('allow')
    expect(await preview('denied')).toBe('deny')
    expect(await preview('reviewed')).toBe('review')
    expect(await preview('high', { n: 1 })).toBe('review')
    expect(rollbacks.at(-1)).toEqual({ type: 'tool_call', target: 'allowed', payload: { n: 1 } })
    expect(await preview('never')).toBe('deny')
    // What never runs: no rollback, no such tool, no JSON, above the ceiling, or refused at intake.
    expect(await preview('bare')).toBe('deny')
    expect(await preview('nobody')).toBe('deny')
    expect(await preview('read', { n: 1n })).toBe('deny')
    expect(await preview('allowed', {}, {}, { ...task, limits: { ceiling: 'read_only' } })).toBe(
      'deny',
    )
    expect(await preview('read', {}, { request_id: 'x' })).toBe('deny')
    expect(await made.entries()).toEqual([])
    expect(world.done).toEqual([])
  })
})

describe('the answer to a call', () => {
  test('UAICP-05 that failed or was refused is given again as it was, and the log gets no second entry', async () => {
    const made = await kit()
    const { governor, world } = made
    const deny = rules([
      { when: ({ tool }) => tool === 'write', effect: 'deny' },
      { when: ({ tool }) => tool === 'other', effect: 'allow' },
    ])
    const task = taskOf({
      tools: [toolOf(world, 'read'), toolOf(world, 'write', { risk: low })],
      policy: deny,
    })
    const id = await open(made, task)
    const read = { id: 'r', tool: 'read', args: { n: 1 } }
    const allowed = await governor.admit(id, read)
    expect(allowed).toMatchObject({
      type: 'allow',
      call: { request_id: id, call: 'r', tool: 'read', risk: 'read_only', args: { n: 1 } },
    })
    const reasons = [{ code: 'TOOL_ERROR', subject: 'read', detail: 'gone' }] as const
    await governor.settle(id, 'r', { type: 'error', reasons, effect: 'absent' })
    const write = { id: 'w', tool: 'write', args: {} }
    const refused = { type: 'deny', reasons: [{ code: 'POLICY_BLOCKED', subject: 'write' }] }
    expect(await governor.admit(id, write)).toEqual(refused)
    const before = (await made.entries()).length
    for (const process of [governor, made.restart({ tasks: [task] })]) {
      expect(await process.admit(id, read)).toEqual({ type: 'deny', reasons })
      expect(await process.admit(id, write)).toEqual(refused)
    }
    expect(await made.entries()).toHaveLength(before)
  })

  test('UAICP-27 with arguments that are no JSON is a refusal in the log, with the tier of its tool', async () => {
    const made = await kit()
    const id = await open(made, taskOf({ tools: [toolOf(made.world, 'write', { risk: low })] }))
    const call = { id: 'a', tool: 'write', args: { n: 1n } as never }
    expect(await made.governor.admit(id, call)).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'SCHEMA_INVALID', subject: 'write' }],
    })
    const [entry] = (await made.entries()).filter(({ type }) => type === 'call_refused')
    expect(entry?.data).toMatchObject({
      call: 'a',
      tool: 'write',
      risk: low,
      args_hash: hashJson(null),
    })
    expect(Object.keys(entry?.data ?? {}).toSorted()).toEqual(
      ['call', 'tool', 'risk', 'args_hash', 'reasons'].toSorted(),
    )
  })

  test('UAICP-21 a call without arguments has none, and one whose raise() says nothing has its own tier', async () => {
    const { governor, world, entries } = await kit()
    const got: unknown[] = []
    const write = toolOf(world, 'write', {
      risk: low,
      raise: () => undefined as never,
      run: (args) => void got.push(args),
    })
    const result = await governor.run(taskOf({ tools: [write] }), init, async (run) => {
      await run.call(write, undefined as never)
      return 1
    })
    expect(result.state).toBe('deliver')
    expect(got).toEqual([{}])
    const [intent] = (await entries()).filter(({ type }) => type === 'call_started')
    expect(intent?.data).toMatchObject({ risk: low, args_hash: hashJson({}) })
    expect(intent?.data).not.toHaveProperty('shadow')
  })

  test('UAICP-24 that names no token leaves the call waiting; a rejected token is named, also with policies on trial', async () => {
    const trial: Policy = {
      id: 'trial',
      hash: hashJson('trial'),
      mode: 'shadow',
      decide: () => ({ effect: 'allow' }),
    }
    const made = await kit({ policy: [rules([{ when: () => true, effect: 'review' }]), trial] })
    const { governor, world } = made
    const write = toolOf(world, 'write', { risk: low })
    const task = taskOf({ tools: [write] })
    const answering = (tokens: string[]) =>
      governor.run(
        task,
        { ...init, approve: async () => ({ type: 'approve', tokens }) },
        async (run) => (await run.call(write, {})).result,
      )
    expect((await answering([])).outcome).toBe('pending')
    expect(codesOf(await answering(['forged']))).toContain('APPROVAL_INVALID')
    const [refused] = (await made.entries()).filter(({ type }) => type === 'call_refused')
    expect(refused?.data['shadow']).toEqual([{ policy: 'trial', effect: 'allow' }])
    const id = await open(made, task)
    const call = { id: 'a', tool: 'write', args: {} }
    expect(await governor.admit(id, call)).not.toHaveProperty('rejected')
    const forged = { type: 'approve', tokens: ['forged'] } as const
    expect(await governor.admit(id, call, forged)).toMatchObject({
      type: 'review',
      rejected: { code: 'APPROVAL_INVALID', subject: 'write' },
    })
  })
})

test('UAICP-27 a tool of the vendor is shown to policies as what it is, and logged in execute', async () => {
  const seen: unknown[] = []
  const policy: Policy = {
    id: 'p',
    hash: hashJson('p'),
    decide: (action) => {
      seen.push(action)
      return { effect: action.tool === 'search' ? 'allow' : 'deny' }
    },
  }
  const { governor, entries } = await kit({ policy })
  await governor.run(taskOf({ tools: [] }), init, async (run) => {
    await run.native('search')
    await run.native('shell').catch(() => undefined)
    return 1
  })
  expect(seen[0]).toMatchObject({
    call_id: 'native:search',
    tool: 'search',
    risk: high,
    args: null,
    args_hash: hashJson(null),
    native: true,
  })
  const [search, shell] = (await entries()).filter(({ type }) => type === 'native_tool')
  expect(search?.envelope.state).toBe('execute')
  expect(search?.envelope.identity['uaicp:actor']).toEqual({ type: 'agent', id: 'agent-1' })
  expect(search?.data).toEqual({ tool: 'search', allowed: true })
  expect(shell?.data).toMatchObject({
    tool: 'shell',
    allowed: false,
    reasons: [{ code: 'TOOL_UNGOVERNED', subject: 'shell' }],
  })
})

test('UAICP-34 a run that is stopped while its first call waits for the log makes no call', async () => {
  const abort = new AbortController()
  const made = await kit()
  const governor = made.restart({
    audit: {
      read: made.log.read,
      append: (entry, options) => {
        if (/"transition".*"state":"execute"/.test(entry.line)) abort.abort()
        return made.log.append(entry, options)
      },
    },
  })
  const read = toolOf(made.world, 'read')
  const given = { ...init, signal: abort.signal }
  const result = await governor.run(taskOf({ tools: [read] }), given, async (run) => {
    await run.call(read, {})
    return 1
  })
  expect(codesOf(result)).toEqual(['CANCELLED'])
  expect(made.world.done).toEqual([])
  const [refused] = (await made.entries()).filter(({ type }) => type === 'call_refused')
  expect(refused?.data).toMatchObject({ tool: 'read', reasons: [{ code: 'CANCELLED' }] })
})

test('UAICP-07 a call that ends after its attempt has no evidence in the next one', async () => {
  const made = await kit()
  const task = taskOf({ tools: [toolOf(made.world, 'read')], repair: { max: 1 } })
  const id = await open(made, task)
  await made.governor.admit(id, { id: 'late', tool: 'read', args: {} })
  expect(await made.governor.fail(id, [{ code: 'RUN_ERROR' }])).toMatchObject({ type: 'repair' })
  const late = made.governor.settle(id, 'late', { type: 'result', value: 1 })
  await expect(late).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  expect((await made.entries()).some(({ type }) => type === 'call_settled')).toBe(false)
})
