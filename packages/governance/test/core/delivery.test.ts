import { describe, expect, test } from 'vitest'
import {
  defineVerifier,
  memoryPayloads,
  NoEffectError,
  rules,
  type Check,
  type Need,
  type ReasonCode,
  type Result,
  type Run,
  type Verifier,
} from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy, type Kit } from '../support/kit.ts'

const low = 'write_low_risk' as const
const high = 'write_high_risk' as const

async function open({ governor }: Kit, task: ReturnType<typeof taskOf>): Promise<string> {
  const opened = await governor.open(task, init)
  return opened.type === 'opened' ? opened.request_id : ''
}

describe('repair', () => {
  test.each([
    'CANCELLED',
    'DEADLINE_EXCEEDED',
    'BUDGET_EXCEEDED',
    'AUDIT_UNAVAILABLE',
    'STATE_CONFLICT',
    'TOOL_IN_DOUBT',
    'APPROVAL_DENIED',
    'IDENTITY_INVALID',
  ] satisfies ReasonCode[])('UAICP-11 is not tried after %s', async (code) => {
    const made = await kit()
    const task = taskOf({ tools: [], repair: { max: 2 } })
    const id = await open(made, task)
    expect(await made.governor.fail(id, [{ code: 'RUN_ERROR' }])).toMatchObject({ type: 'repair' })
    const ended = await made.governor.fail(id, [{ code: 'RUN_ERROR' }, { code }])
    expect(ended.type).toBe('fail_safe')
  })

  test('UAICP-11 goes on over a write without rollback, and leaves writes alone if the task says so', async () => {
    for (const undoFirst of [true, false]) {
      const { governor, world } = await kit()
      const write = toolOf(world, 'write', {
        risk: low,
        ...(!undoFirst && { rollback: undoBy('write') }),
      })
      const task = taskOf({
        tools: [write, toolOf(world, 'undo_write', { risk: low })],
        repair: { max: 1, undoFirst },
      })
      const result = await governor.run(task, init, async (run) => {
        if (run.attempt === 2) return 1
        await run.call(write, {})
        throw new Error('again')
      })
      expect(result.state).toBe('deliver')
      expect(world.done).toEqual(['write {}'])
    }
  })
})

describe('a call that ended without its approval does not hold up delivery', () => {
  test('UAICP-15 it was refused', async () => {
    const { governor, world } = await kit()
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const approve = async () => ({ type: 'approve', tokens: ['a.b.c'] }) as const
    const task = taskOf({ tools: [pay, toolOf(world, 'undo_pay')] })
    const result = await governor.run(task, { ...init, approve }, async (run) => {
      await run.call(pay, {}).catch(() => undefined)
      return 1
    })
    expect(result.state).toBe('deliver')
    expect(world.done).toEqual([])
  })

  test.each(['done', 'failed'])('UAICP-15 it needed none any more: %s', async (end) => {
    const made = await kit({ policy: rules([{ when: () => true, effect: 'review' }]) })
    const write = toolOf(made.world, 'write', {
      risk: low,
      run: () => {
        if (end === 'failed') throw new NoEffectError('no')
      },
    })
    const task = taskOf({ tools: [write] })
    const body = async (run: Run) => {
      await run.call(write, {}).catch((error: unknown) => {
        if ((error as { code: string }).code === 'APPROVAL_REQUIRED') throw error
      })
      return 1
    }
    const first = await made.governor.run(task, init, body)
    if (first.outcome !== 'pending') throw new Error(first.state)
    const policy = rules([{ when: () => true, effect: 'allow' }])
    const result = await made.restart({ policy }).resume(first.request_id, task, body)
    expect(result.state).toBe('deliver')
  })
})

test('UAICP-33 a failure names what was refused on the way, too', async () => {
  const { governor, world } = await kit({ policy: [] })
  const write = toolOf(world, 'write', { risk: low })
  const task = taskOf({ tools: [write], needs: [{ type: 'tool_result', source: 'write' }] })
  const result = await governor.run(task, init, async (run) => {
    await run.call(write, {}).catch(() => undefined)
    return 1
  })
  expect(codesOf(result)).toEqual(['EVIDENCE_MISSING', 'POLICY_BLOCKED'])
})

test('UAICP-27 the last entry names the evidence and the reports, and the value is durable', async () => {
  const made = await kit()
  const durable: string[] = []
  const governor = made.restart({
    payloads: {
      get: made.payloads.get,
      put: (hash, text, options) => {
        if (options?.durable) durable.push(text)
        return made.payloads.put(hash, text)
      },
    },
  })
  const read = toolOf(made.world, 'read')
  const check = (): Check[] => [{ check_id: 'c', result: 'pass' }]
  const verifiers = [defineVerifier({ id: 'v', timeoutMs: 9, check })]
  const task = taskOf({ tools: [read], verifiers })
  const body = async (run: Run) => {
    await run.call(read, {})
    return 'the value'
  }
  const result = await governor.run(task, init, body)
  if (result.state !== 'deliver') throw new Error(result.state)
  const [last] = (await made.entries()).filter(({ type }) => type === 'delivered')
  expect(last?.data).toMatchObject({
    evidence: result.evidence.map(({ evidence_id }) => evidence_id),
    reports: result.reports.map(({ report_id }) => report_id),
  })
  expect([result.evidence.length, result.reports.length]).toEqual([1, 1])
  expect(durable).toEqual(['"the value"'])
  // Whoever asks later gets the same result.
  const again = await made.restart().resume(result.receipt.request_id, task, body)
  expect(again).toMatchObject({
    value: 'the value',
    evidence: result.evidence,
    reports: result.reports,
  })
})

describe('verification', () => {
  async function verify(
    verifier: Pick<Verifier, 'check'> & Partial<Verifier>,
    changes: Partial<Parameters<typeof taskOf>[0]> = {},
  ) {
    const made = await kit()
    const verifiers = [defineVerifier({ id: 'v', timeoutMs: 50, ...verifier })]
    const running = made.governor.run(
      taskOf({ tools: [], verifiers, ...changes }),
      init,
      async () => 1,
    )
    await made.time.advance(51)
    const result = await running
    const log = (await made.entries()).filter(({ type }) => type === 'verified')
    return { result, log }
  }
  const mixed = (): Check[] => [
    { check_id: 'good', result: 'pass' },
    { check_id: 'bad', result: 'fail' },
    { check_id: 'left out', result: 'skip' },
  ]

  test('UAICP-27 the log says which verifier failed, why, and in which attempt', async () => {
    const { result, log } = await verify({ check: mixed }, { repair: { max: 1 } })
    expect(result).toMatchObject({
      reasons: [
        { code: 'VERIFICATION_FAILED', subject: 'v', detail: 'bad: fail, left out: skip' },
        { code: 'REPAIR_EXHAUSTED' },
      ],
    })
    expect(log).toHaveLength(2)
    expect(new Set(log.map(({ data }) => data['report'])).size).toBe(2)
    for (const { data, envelope } of log) {
      expect(envelope.outcome).toBe('failure')
      expect(data).toMatchObject({
        verifier: 'v',
        mechanical: true,
        reasons: [{ code: 'VERIFICATION_FAILED' }],
      })
    }
  })

  test('UAICP-20 a model-graded verifier counts where the task accepts it, and the log says what it is', async () => {
    const check = (): Check[] => [{ check_id: 'c', result: 'pass' }]
    const { result, log } = await verify({ check, mechanical: false }, { acceptModelGraded: true })
    expect(result.state).toBe('deliver')
    expect(log).toMatchObject([{ data: { mechanical: false }, envelope: { outcome: 'success' } }])
  })

  test('UAICP-20 a verifier is told when its time is over', async () => {
    let given: AbortSignal | undefined
    const { result } = await verify({
      check: (_evidence, { signal }) => {
        given = signal
        return new Promise<Check[]>(() => undefined)
      },
    })
    expect(codesOf(result)).toEqual(['VERIFIER_TIMEOUT'])
    expect(given?.aborted).toBe(true)
  })
})

describe('required evidence', () => {
  async function deliver(need: Need, age = 0, type: Need['type'] = 'custom') {
    const { governor, world, time } = await kit()
    const read = toolOf(world, 'read', {
      evidence: () => ({ type, subtype: 'com.example:rate', payload: 1 }),
    })
    return governor.run(taskOf({ tools: [read], needs: [need] }), init, async (run) => {
      await run.call(read, {})
      await time.advance(age)
      return 1
    })
  }
  const rate = { type: 'custom', subtype: 'com.example:rate' } as const

  test('UAICP-19 is of its subtype, and as old as it may be', async () => {
    expect((await deliver(rate)).state).toBe('deliver')
    const other = await deliver({ type: 'custom', subtype: 'com.example:price' })
    expect(other).toMatchObject({
      reasons: [{ code: 'EVIDENCE_MISSING', subject: 'custom:com.example:price' }],
      missing: [{ type: 'custom', subtype: 'com.example:price', min: 1, found: 0 }],
    })
    expect((await deliver({ ...rate, maxAgeMs: 10 }, 10)).state).toBe('deliver')
    expect(codesOf(await deliver({ ...rate, maxAgeMs: 10 }, 11))).toContain('EVIDENCE_STALE')
  })

  test('UAICP-19 is of its subtype, whatever its type', async () => {
    for (const type of ['tool_result', 'test_report', 'custom'] as const) {
      expect((await deliver({ type, subtype: 'com.example:rate' }, 0, type)).state).toBe('deliver')
      expect(await deliver({ type, subtype: 'com.example:price' }, 0, type)).toMatchObject({
        state: 'fail_safe',
        missing: [{ type, subtype: 'com.example:price', min: 1, found: 0 }],
      })
    }
  })

  test('UAICP-19 meets a condition only if that answers true', async () => {
    const broken = (): never => {
      throw new Error('no')
    }
    expect((await deliver({ ...rate, where: () => true })).state).toBe('deliver')
    for (const where of [broken, () => 'yes' as never, () => 1 as never])
      expect(codesOf(await deliver({ ...rate, where }))).toContain('EVIDENCE_INVALID')
  })
})

test('UAICP-09 nothing is delivered at or after the deadline', async () => {
  for (const [ms, type] of [
    [99, 'delivered'],
    [100, 'fail_safe'],
  ] as const) {
    const made = await kit()
    const id = await open(made, taskOf({ tools: [], limits: { deadlineMs: 100 } }))
    await made.time.advance(ms)
    const ended = await made.governor.deliver(id, 1)
    expect(ended.type).toBe(type)
    if (ended.type === 'fail_safe') expect(codesOf(ended.result)).toEqual(['DEADLINE_EXCEEDED'])
  }
})

test('UAICP-23 a policy that changed stops delivery only if it denies what was done', async () => {
  for (const effect of ['allow', 'review', 'deny'] as const) {
    const made = await kit()
    const write = toolOf(made.world, 'write', { risk: low })
    const task = taskOf({ tools: [write] })
    const id = await open(made, task)
    await made.governor.admit(id, { id: 'a', tool: 'write', args: {} })
    await made.governor.settle(id, 'a', { type: 'result', value: 1 })
    const policy = rules([{ when: () => true, effect }], { version: effect })
    const ended = await made.restart({ policy, tasks: [task] }).deliver(id, 1)
    expect(ended.type).toBe(effect === 'deny' ? 'fail_safe' : 'delivered')
    if (ended.type === 'fail_safe') expect(codesOf(ended.result)).toContain('POLICY_BLOCKED')
  }
})

test('UAICP-18 a caught failure of a child stays in the reasons with its cause', async () => {
  const { governor } = await kit()
  const needy = taskOf({ name: 'needy', tools: [], needs: [{ type: 'test_report' }] })
  const result = await governor.run(taskOf({ tools: [] }), init, async (run) => {
    await run.child(needy, {}, async () => 1).catch(() => undefined)
    return 1
  })
  expect(codesOf(result)).toEqual(['CHILD_FAIL_SAFE', 'EVIDENCE_MISSING'])
})

test('UAICP-34 a run that goes on and throws ends its open child, whose writes are undone', async () => {
  const { governor, world, restart, entries } = await kit()
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: low })
  const inner = taskOf({ name: 'inner', tools: [write, pay, undo] })
  const outer = taskOf({ name: 'outer', tools: [] })
  const first = await governor.run(outer, init, (run) =>
    run.child(inner, {}, async (child) => {
      await child.call(write, { n: 1 })
      return (await child.call(pay, {})).result
    }),
  )
  if (first.outcome !== 'pending') throw new Error(first.state)
  const ended = await restart({ tasks: [inner] }).resume(first.request_id, outer, async () => {
    throw new Error('gives up')
  })
  expect(codesOf(ended)).toContain('RUN_ERROR')
  expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}'])
  expect((await entries()).filter(({ type }) => type === 'failed_safe')).toHaveLength(2)
})

describe('a tool that fails', () => {
  test('UAICP-34 before it changed anything, or that only reads, leaves no doubt', async () => {
    const { governor, world } = await kit()
    const refuse = () => {
      throw Object.assign(new Error('no such field'), { code: 'TOOL_ARGUMENTS_INVALID' })
    }
    const write = toolOf(world, 'write', { risk: low, run: refuse })
    const read = toolOf(world, 'read', { run: refuse })
    // The code counts, not the class of what is thrown.
    const plain = toolOf(world, 'plain', {
      risk: low,
      run: () => Promise.reject({ code: 'NO_EFFECT' } as unknown as Error),
    })
    const tools = [write, read, plain]
    const codes: string[][] = []
    const result = await governor.run(taskOf({ tools }), init, async (run) => {
      for (const tool of tools) {
        await run.call(tool, {}).catch(({ reasons }: { reasons: { code: string }[] }) => {
          codes.push(reasons.map(({ code }) => code))
        })
      }
      return 1
    })
    expect(result.state).toBe('deliver')
    expect(codes).toEqual([['TOOL_ERROR'], ['TOOL_ERROR'], ['TOOL_ERROR']])
  })

  test.each([
    ['false', (): boolean => false, 'deliver'],
    ['true', (): boolean => true, 'deliver'],
    [
      'by a throw',
      (): never => {
        throw new Error('down')
      },
      'fail_safe',
    ],
    ['nothing in time', (): Promise<never> => new Promise<never>(() => undefined), 'fail_safe'],
  ] as const)('UAICP-34 is in doubt unless its probe answers: %s', async (_name, probe, state) => {
    const { governor, world, time } = await kit({ limits: { undoTimeoutMs: 100 } })
    const lose = (): never => {
      throw new Error('connection lost')
    }
    const write = toolOf(world, 'write', { risk: low, run: lose, probe })
    const running = governor.run(taskOf({ tools: [write] }), init, async (one) => {
      await one.call(write, {}).catch(() => undefined)
      return 1
    })
    await time.advance(1000)
    const result: Result<number> = await running
    expect(result.state).toBe(state)
    if (state === 'fail_safe') expect(codesOf(result)).toEqual(['TOOL_IN_DOUBT'])
  })

  test('UAICP-34 to end in time may still end within the grace, and its result counts', async () => {
    const { governor, world, time } = await kit({ limits: { graceMs: 100 } })
    const write = toolOf(world, 'write', {
      risk: low,
      timeoutMs: 50,
      run: (_args, { signal }) =>
        new Promise<string>((resolve) => {
          signal.addEventListener('abort', () => time.timer(90, () => resolve('late')))
        }),
    })
    const running = governor.run(taskOf({ tools: [write] }), init, async (run) => {
      const { result } = await run.call(write, {})
      return result
    })
    await time.advance(50)
    await time.advance(95)
    expect(await running).toMatchObject({ state: 'deliver', value: 'late' })
  })
})

describe('evidence', () => {
  test('UAICP-05 names its tool, its time and who vouches for it, also when it is read back', async () => {
    const made = await kit()
    const { governor, world, time, restart } = made
    const read = toolOf(world, 'read')
    const pay = toolOf(world, 'pay', { risk: high, rollback: undoBy('pay') })
    const task = taskOf({ tools: [read, pay, toolOf(world, 'undo_pay')] })
    const body = async (run: Run) => {
      await time.advance(1000)
      await run.call(read, {})
      await time.advance(1000)
      await run.call(pay, {})
      return 1
    }
    const started = time.now()
    const tokens: string[] = []
    const approve: typeof made.yes = async (request) => {
      tokens.push(await made.sign(request))
      return { type: 'approve', tokens }
    }
    const result = await governor.run(task, { ...init, approve }, body)
    if (result.state !== 'deliver') throw new Error(result.state)
    const at = (ms: number) => new Date(started + ms).toISOString()
    const { jti } = JSON.parse(atob(tokens[0]!.split('.')[1]!)) as { jti: string }
    expect(result.evidence).toMatchObject([
      { evidence_type: 'tool_result', source: 'read', actor: 'tool:read', collected_at: at(1000) },
      { evidence_type: 'tool_result', source: 'pay', actor: 'tool:pay', collected_at: at(2000) },
      {
        evidence_type: 'approval_token',
        source: 'pay',
        actor: 'human:pat',
        payload: { approvers: [{ type: 'human', id: 'pat' }], tokens: [jti] },
      },
    ])
    const again = await restart().resume(result.receipt.request_id, task, body)
    expect(again).toMatchObject({ evidence: result.evidence })
  })

  test('UAICP-19 of an approval is there only for a call that was approved and succeeded', async () => {
    for (const answer of ['approve', 'deny'] as const) {
      const { governor, world, yes } = await kit()
      const pay = toolOf(world, 'pay', {
        risk: high,
        rollback: undoBy('pay'),
        run: () => {
          throw new NoEffectError('closed')
        },
      })
      const task = taskOf({
        tools: [pay, toolOf(world, 'undo_pay')],
        needs: [{ type: 'approval_token' }],
      })
      const deny = async () => ({ type: 'deny', reason: 'no' }) as const
      const approve = answer === 'approve' ? yes : deny
      const result = await governor.run(task, { ...init, approve }, async (run) => {
        await run.call(pay, {}).catch(() => undefined)
        return 1
      })
      expect(codesOf(result)).toContain('EVIDENCE_MISSING')
    }
  })

  test('UAICP-34 that cannot be made does not hide that the write happened', async () => {
    const { governor, world, entries } = await kit()
    const write = toolOf(world, 'write', {
      risk: low,
      rollback: undoBy('write'),
      evidence: () => ({ type: 'custom', payload: 1 }),
    })
    const read = toolOf(world, 'read', { evidence: () => ({ type: 'custom', payload: 1 }) })
    const tools = [write, read, toolOf(world, 'undo_write', { risk: low })]
    const result = await governor.run(taskOf({ tools }), init, async (run) => {
      await run.call(read, {}).catch(() => undefined)
      return (await run.call(write, { n: 1 })).result
    })
    expect(codesOf(result)).toContain('EVIDENCE_INVALID')
    expect(world.done.at(-1)).toBe('undo_write {"n":1}')
    const settled = (await entries()).filter(({ type }) => type === 'call_settled')
    expect(settled.map(({ data }) => data['effect'])).toEqual(['none', 'applied'])
  })
})

test('UAICP-29 what is found out later is settled by the governor, not by the agent', async () => {
  const made = await kit()
  const write = toolOf(made.world, 'write', { risk: low, probe: () => 'applied' })
  const task = taskOf({ tools: [write] })
  const id = await open(made, task)
  await made.governor.admit(id, { id: 'a', tool: 'write', args: {} })
  await made.restart({ tasks: [task] }).recover()
  const [settled] = (await made.entries(id)).filter(({ type }) => type === 'call_settled')
  expect(settled?.data).toMatchObject({ effect: 'applied', settled_by: 'probe' })
  expect(settled?.envelope.identity['uaicp:actor']).toEqual({ type: 'system', id: 'governor.test' })
})

test('UAICP-07 a call that ends after the run has gone on to verify is not recorded', async () => {
  const made = await kit()
  const { governor, world } = made
  const id = await open(made, taskOf({ tools: [toolOf(world, 'read')] }))
  await governor.admit(id, { id: 'a', tool: 'read', args: {} })
  await governor.fail(id, [{ code: 'RUN_ERROR' }])
  await expect(governor.settle(id, 'a', { type: 'result', value: 1 })).rejects.toMatchObject({
    code: 'STATE_CONFLICT',
  })
  expect((await made.entries(id)).some(({ type }) => type === 'call_settled')).toBe(false)
})

test('UAICP-14 a streamed envelope has the identity and time of its chunk, and a listener that throws changes nothing', async () => {
  const { governor, time } = await kit()
  const chunks: unknown[] = []
  const started = time.now()
  const onChunk = (chunk: unknown): void => {
    chunks.push(chunk)
    throw new Error('the page is gone')
  }
  const result = await governor.run(taskOf({ tools: [] }), { ...init, onChunk }, async (run) => {
    await time.advance(1000)
    run.chunk('one')
    return 1
  })
  expect(result.state).toBe('deliver')
  const timestamp = new Date(started + 1000).toISOString()
  const { identity } = init
  expect(chunks).toMatchObject([
    { identity, timestamp },
    { identity, timestamp },
  ])
})

test('UAICP-19 evidence that the gate does not accept does not count, though it is there', async () => {
  const made = await kit()
  const { governor, world, log } = made
  const read = toolOf(world, 'read', {
    evidence: () => ({ type: 'custom', subtype: 'com.example:rate', payload: 1 }),
  })
  const task = taskOf({ tools: [read], needs: [{ type: 'custom' }] })
  const id = await open(made, task)
  await governor.admit(id, { id: 'a', tool: 'read', args: {} })
  await governor.settle(id, 'a', { type: 'result', value: 1 })
  // The kind of the evidence is lost on the way from the log.
  const careless = made.restart({
    tasks: [task],
    audit: {
      append: log.append,
      async *read(options) {
        for await (const record of log.read(options)) {
          const line = record.line.replace(',"subtype":"com.example:rate"', '')
          yield { ...record, line, envelope: JSON.parse(line) as typeof record.envelope }
        }
      },
    },
  })
  const delivery = await careless.deliver(id, 1)
  if (delivery.type !== 'fail_safe') throw new Error(delivery.type)
  expect(codesOf(delivery.result)).toEqual(['EVIDENCE_MISSING', 'EVIDENCE_INVALID'])
})

test('UAICP-09 a run that is stopped while it is verified is not delivered', async () => {
  const abort = new AbortController()
  const { governor } = await kit()
  const verifier = defineVerifier({
    id: 'v',
    timeoutMs: 100,
    check: () => {
      abort.abort()
      return [{ check_id: 'c', result: 'pass' }]
    },
  })
  const task = taskOf({ tools: [], verifiers: [verifier] })
  const result = await governor.run(task, { ...init, signal: abort.signal }, async () => 1)
  expect(codesOf(result)).toEqual(['CANCELLED'])
})

test('UAICP-06 the report that is made for a verifier says what went wrong', async () => {
  const { governor, entries, payloads, time } = await kit()
  const fails = (): never => {
    throw new Error('no ledger')
  }
  const verifiers = [
    defineVerifier({ id: 'throws', timeoutMs: 100, check: fails }),
    defineVerifier({ id: 'talks', timeoutMs: 100, check: () => 'fine' as never }),
  ]
  const result = await governor.run(taskOf({ tools: [], verifiers }), init, async () => 1)
  const id = 'receipt' in result ? result.receipt.request_id : ''
  const reports: unknown[] = []
  for (const { type, data } of await entries())
    if (type === 'verified')
      reports.push(JSON.parse((await payloads.get(data['report_hash'] as never)) ?? ''))
  const common = {
    request_id: id,
    evidence_ids: [],
    status: 'fail',
    generated_at: new Date(time.now()).toISOString(),
  }
  expect(reports).toEqual([
    {
      ...common,
      report_id: `${id}/1/throws`,
      verifier_id: 'throws',
      checks: [{ check_id: 'VERIFIER_ERROR', result: 'fail', details: 'no ledger' }],
    },
    {
      ...common,
      report_id: `${id}/1/talks`,
      verifier_id: 'talks',
      checks: [
        {
          check_id: 'VERIFIER_ERROR',
          result: 'fail',
          details: expect.stringContaining('must be object') as string,
        },
      ],
    },
  ])
})

test('UAICP-14 a read that goes on after its run has failed streams nothing any more', async () => {
  const { governor, world, time, entries } = await kit()
  const abort = new AbortController()
  const chunks: unknown[] = []
  let late = (): void => undefined
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const codes: unknown[] = []
  const stream = (): void => {
    try {
      late()
    } catch (error) {
      codes.push((error as { code: string }).code)
    }
  }
  const read = toolOf(world, 'read', {
    run: (_args, { chunk }) => {
      chunk('in time')
      late = () => chunk('late')
      begin()
      return new Promise(() => undefined)
    },
  })
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', { risk: low, run: stream })
  const onChunk = (chunk: unknown): void => void chunks.push(chunk)
  const given = { ...init, onChunk, signal: abort.signal }
  const running = governor.run(taskOf({ tools: [read, write, undo] }), given, async (run) => {
    await run.call(write, {})
    return (await run.call(read, {})).result
  })
  await begun
  abort.abort()
  await time.advance(1001)
  expect((await running).state).toBe('fail_safe')
  stream()
  expect(codes).toEqual(['STATE_CONFLICT', 'STATE_CONFLICT'])
  expect(chunks).toMatchObject([
    { streaming: { 'uaicp:text': 'in time', 'uaicp:verified': false } },
    { state: 'fail_safe', streaming: { is_final: true, 'uaicp:retracted': 1 } },
  ])
  expect((await entries()).filter(({ type }) => type === 'chunk')).toHaveLength(1)
})

describe('what a delivery rests on', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic

  test.each([
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a cycle', cyclic],
    ['NaN', Number.NaN],
  ])('UAICP-01 %s is no candidate, however the run was made', async (_name, candidate) => {
    const made = await kit()
    const task = taskOf({ tools: [] })
    const wrong = { code: 'RUN_ERROR', subject: 'candidate', detail: 'it is not JSON' }
    const result = await made.governor.run(task, init, async () => candidate as never)
    expect(result).toMatchObject({ state: 'fail_safe', reasons: [wrong] })
    const ended = await made.governor.deliver(await open(made, task), candidate as never)
    expect(ended).toMatchObject({ type: 'fail_safe', result: { reasons: [wrong] } })
  })

  test('UAICP-05 evidence that another process reads is the evidence that the call gave', async () => {
    let now = Date.UTC(2026, 0, 1)
    const made = await kit({ clock: { now: () => (now += 7) } })
    const invoice = toolOf(made.world, 'invoice', {
      evidence: () => ({ type: 'custom', subtype: 'com.example:invoice', payload: { sum: 1 } }),
    })
    const task = taskOf({ tools: [invoice] })
    const seen: unknown[] = []
    const body = async (run: Run): Promise<number> => {
      seen.push((await run.call(invoice, {})).evidence)
      return 1
    }
    const result = await made.governor.run(task, init, body)
    if (result.state !== 'deliver') throw new Error(result.state)
    expect(result.evidence).toEqual(seen)
    expect(seen).toMatchObject([{ 'uaicp:subtype': 'com.example:invoice' }])
    const { request_id } = result.receipt
    const again = await made.restart({ tasks: [task] }).resume(request_id, task, body)
    expect(again).toMatchObject({ state: 'deliver', evidence: seen, reports: result.reports })
    const [settled] = (await made.entries()).filter(({ type }) => type === 'call_settled')
    expect(result.evidence[0]?.collected_at).toBe(settled?.envelope.timestamp)
  })

  test('UAICP-31 a custom kind of evidence is named prefix:name', async () => {
    const { governor, world } = await kit()
    const codeOf = async (subtype: string | undefined): Promise<unknown> => {
      const custom = toolOf(world, 'custom', {
        evidence: () => ({ type: 'custom', payload: 1, ...(subtype !== undefined && { subtype }) }),
      })
      const result = await governor.run(taskOf({ tools: [custom] }), init, async (run) => {
        await run.call(custom, {})
        return 1
      })
      return codesOf(result)[0]
    }
    for (const subtype of ['a:b', 'com.example:x:y', 'a:b-c'])
      expect(await codeOf(subtype), subtype).toBe(undefined)
    for (const subtype of [undefined, '', 'x', ':', 'a:', ':b', 'a b:c', 'a:b c', '::'])
      expect(await codeOf(subtype), subtype).toBe('EVIDENCE_INVALID')
  })

  test('UAICP-33 evidence that is too old is not counted as found', async () => {
    const { governor, world, time } = await kit()
    const read = toolOf(world, 'read')
    const need: Need = { type: 'tool_result', source: 'read', min: 2, maxAgeMs: 100 }
    const result = await governor.run(
      taskOf({ tools: [read], needs: [need] }),
      init,
      async (run) => {
        await run.call(read, { n: 1 })
        await time.advance(101)
        await run.call(read, { n: 2 })
        return 1
      },
    )
    const subject = 'tool_result:read'
    expect(result).toMatchObject({
      missing: [{ type: 'tool_result', source: 'read', min: 2, found: 1 }],
      reasons: [
        { code: 'EVIDENCE_MISSING', subject, detail: '1 of 2' },
        { code: 'EVIDENCE_STALE', subject },
      ],
    })
  })

  test.each<[unknown, string]>([
    [true, 'applied'],
    ['applied', 'applied'],
    [false, 'absent'],
    ['absent', 'absent'],
    ['unknown', 'in_doubt'],
    [undefined, 'in_doubt'],
    [null, 'in_doubt'],
    [0, 'in_doubt'],
    ['', 'in_doubt'],
    [1, 'in_doubt'],
  ])('UAICP-34 a probe that answers %o has found the effect %s', async (found, effect) => {
    const { governor, world, entries } = await kit()
    const write = toolOf(world, 'write', {
      risk: low,
      probe: () => found as never,
      run: () => {
        throw new Error('lost')
      },
    })
    await governor.run(taskOf({ tools: [write] }), init, async (run) => {
      await run.call(write, {})
      return 1
    })
    const [settled] = (await entries()).filter(({ type }) => type === 'call_settled')
    expect(settled?.data['effect']).toBe(effect)
  })

  test('UAICP-09 evidence whose payload is gone or damaged prevents delivery, needed or not', async () => {
    for (const damage of ['gone', 'damaged'] as const) {
      const payloads = memoryPayloads()
      const made = await kit({ payloads })
      const task = taskOf({ tools: [toolOf(made.world, 'read')] })
      const id = await open(made, task)
      await made.governor.admit(id, { id: 'r', tool: 'read', args: {} })
      const settled = await made.governor.settle(id, 'r', { type: 'result', value: 5 })
      if (settled.type !== 'done') throw new Error(settled.type)
      if (damage === 'gone') payloads.erase(settled.evidence.hash)
      else await payloads.put(settled.evidence.hash, '6')
      expect(await made.restart({ tasks: [task] }).deliver(id, 1)).toMatchObject({
        type: 'fail_safe',
        result: { reasons: [{ code: 'EVIDENCE_INVALID', subject: 'read' }] },
      })
    }
  })

  test('UAICP-15 calls that the body did not await, and those they lead to, belong to the run', async () => {
    const { governor, world } = await kit()
    const read = toolOf(world, 'read')
    const result = await governor.run(taskOf({ tools: [read] }), init, async (run) => {
      void run
        .call(read, { n: 1 })
        .then(() => run.call(read, { n: 2 }))
        .catch(() => undefined)
      return 1
    })
    expect(result).toMatchObject({ state: 'deliver', evidence: [{}, {}] })
    expect(world.count('read')).toBe(2)
  })

  test('UAICP-20 a report about other evidence, as much as there is, does not count', async () => {
    const { governor, world, time } = await kit()
    const read = toolOf(world, 'read')
    const verifier = defineVerifier({
      id: 'v',
      timeoutMs: 1000,
      check: (evidence, { request_id }) => ({
        report_id: 'r',
        request_id,
        verifier_id: 'v',
        evidence_ids: evidence.map((_, index) => `other ${index}`),
        status: 'pass',
        checks: [{ check_id: 'c', result: 'pass' }],
        generated_at: new Date(time.now()).toISOString(),
      }),
    })
    const task = taskOf({ tools: [read], verifiers: [verifier] })
    const result = await governor.run(task, init, async (run) => {
      await run.call(read, {})
      return 1
    })
    expect(codesOf(result)).toEqual(['VERIFIER_INCONSISTENT'])
  })
})
