import { describe, expect, test } from 'vitest'
import {
  hashJson,
  memoryPayloads,
  NoEffectError,
  type AuditAppendOptions,
  type FailedSafe,
  type GovernorOptions,
  type JournalEntry,
} from '../../src/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy, World } from '../support/kit.ts'

const low = 'write_low_risk' as const
const never = { type: 'test_report' as const }

test('UAICP-26 after k writes a failure inverts k, the last first', async () => {
  for (const k of [0, 1, 2, 5]) {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
    const task = taskOf({
      tools: [write, toolOf(world, 'undo_write', { risk: low })],
      needs: [never],
    })
    const result = await governor.run(task, init, async (run) => {
      for (let n = 1; n <= k; n++) await run.call(write, { n })
      return 1
    })
    const numbers = Array.from({ length: k }, (_, i) => k - i)
    expect(world.done.slice(k)).toEqual(numbers.map((n) => `undo_write {"n":${n}}`))
    expect((result as FailedSafe).undo.map(({ status }) => status)).toEqual(
      numbers.map(() => 'done'),
    )
  }
})

test('UAICP-26 overlapping writes are inverted against the order in which they ended', async () => {
  const { governor, world } = await kit()
  const gates = new Map<number, () => void>()
  const write = toolOf(world, 'write', {
    risk: low,
    rollback: undoBy('write'),
    run: ({ n }) => new Promise<void>((resolve) => gates.set(Number(n), resolve)),
  })
  const task = taskOf({
    tools: [write, toolOf(world, 'undo_write', { risk: low })],
    needs: [never],
  })
  await governor.run(task, init, async (run) => {
    const calls = [1, 2, 3].map((n) => run.call(write, { n }))
    while (gates.size < 3) await new Promise((resolve) => setImmediate(resolve))
    for (const n of [2, 3, 1]) {
      gates.get(n)?.()
      await calls[n - 1]
    }
    return 1
  })
  expect(world.done.slice(3)).toEqual([1, 3, 2].map((n) => `undo_write {"n":${n}}`))
})

test('UAICP-34 a failing inversion is retried, reported, and does not stop the others', async () => {
  const { governor, world, entries } = await kit()
  let tries = 0
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', {
    risk: low,
    run: ({ n }) => {
      if (n !== 2) return 1
      tries += 1
      throw new Error('stuck')
    },
  })
  const plain = toolOf(world, 'plain', { risk: low })
  const high = toolOf(world, 'by_hand', {
    risk: low,
    rollback: () => ({ type: 'manual', target: 'ops', payload: 'ring them' }),
  })
  const task = taskOf({
    tools: [write, undo, plain, high],
    needs: [never],
    allowManualRollback: true,
  })
  const result = (await governor.run(task, init, async (run) => {
    for (const n of [1, 2, 3]) await run.call(write, { n })
    await run.call(plain, {})
    await run.call(high, {})
    return 1
  })) as FailedSafe
  expect(result.undo.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
    'by_hand manual',
    'plain skipped',
    'write done',
    'write failed',
    'write done',
  ])
  expect(tries).toBe(3)
  expect(codesOf(result)).toContain('ROLLBACK_FAILED')
  const log = (await entries()).filter(({ type }) => type === 'undo_settled')
  const { request_id } = result.receipt
  expect(log.map(({ data, envelope }) => [data, envelope.outcome])).toEqual([
    [{ request_id, call: '1.5', status: 'manual', tries: 0 }, 'uncertain'],
    [{ request_id, call: '1.4', status: 'skipped', tries: 0 }, 'uncertain'],
    [{ request_id, call: '1.3', status: 'done', tries: 1 }, 'success'],
    [{ request_id, call: '1.2', status: 'failed', tries: 3, error: 'stuck' }, 'failure'],
    [{ request_id, call: '1.1', status: 'done', tries: 1 }, 'success'],
  ])
  expect((await entries()).at(-1)?.data['undo']).toEqual(log.map(({ data }) => data))
})

test('UAICP-25 a write that cannot be undone: the approval and the log say so, and nothing counts as undone', async () => {
  const { governor, world, yes, entries } = await kit()
  const asked: unknown[] = []
  const approve: typeof yes = (request) => {
    asked.push(request.action.rollback)
    return yes(request)
  }
  const mail = toolOf(world, 'mail', { risk: 'write_high_risk', rollback: 'impossible' })
  const repair = { max: 1 }
  const task = taskOf({ tools: [mail], needs: [never], repair })
  const result = (await governor.run(task, { ...init, approve }, async (run) => {
    await run.call(mail, { to: 'bob' })
    return 1
  })) as FailedSafe
  const declared = { type: 'impossible', target: 'mail', payload: 'This cannot be undone.' }
  expect(asked).toEqual([declared])
  const intent = (await entries()).find(({ type }) => type === 'call_started')
  expect(intent?.envelope.rollback_action).toEqual(declared)
  // It stands, so the run is not tried again as if nothing had happened.
  expect(world.done).toEqual(['mail {"to":"bob"}'])
  expect(result.state).toBe('fail_safe')
  expect(result.undo).toMatchObject([{ tool: 'mail', status: 'impossible', action: declared }])
})

test('UAICP-25 only the declaration of a tool can say that it cannot be undone', async () => {
  const { governor, world, yes } = await kit()
  const rollback = () => ({ type: 'impossible', target: 'mail', payload: {} })
  const mail = toolOf(world, 'mail', { risk: 'write_high_risk', rollback })
  const result = await governor.run(
    taskOf({ tools: [mail] }),
    { ...init, approve: yes },
    async (run) => (await run.call(mail, {})).result,
  )
  expect(codesOf(result)).toContain('ROLLBACK_REQUIRED')
  expect(world.done).toEqual([])
})

describe('a rollback that names its tool', () => {
  test('undoes with the arguments that it says, or with those of the call', async () => {
    const { governor, world, entries } = await kit()
    const pay = toolOf(world, 'pay', {
      risk: low,
      rollback: { tool: 'refund', args: async ({ cents }) => ({ amount: cents! }) },
    })
    const lock = toolOf(world, 'lock', { risk: low, rollback: { tool: 'unlock' } })
    const inverses = ['refund', 'unlock'].map((name) => toolOf(world, name, { risk: low }))
    const task = taskOf({ tools: [pay, lock, ...inverses], needs: [never] })
    await governor.run(task, init, async (run) => {
      await run.call(pay, { cents: 5 })
      await run.call(lock, { door: 1 })
      return 1
    })
    expect(world.done.slice(2)).toEqual(['unlock {"door":1}', 'refund {"amount":5}'])
    const started = (await entries()).filter(({ type }) => type === 'call_started')
    expect(started.map(({ envelope }) => envelope.rollback_action)).toEqual([
      { type: 'tool_call', target: 'refund', payload: { amount: 5 } },
      { type: 'tool_call', target: 'unlock', payload: { door: 1 } },
    ])
  })

  test('is refused with the task class if the task has no such tool', () => {
    const world = new World()
    const pay = toolOf(world, 'pay', { risk: low, rollback: { tool: 'refnud' } })
    expect(() => taskOf({ tools: [pay, toolOf(world, 'refund')] })).toThrow(
      expect.objectContaining({
        code: 'GOVERNANCE_DEFINITION_INVALID',
        message: expect.stringContaining('"pay" is undone by "refnud", which is none of its tools'),
      }),
    )
  })

  test('is refused by governed() if it names nothing', () => {
    for (const rollback of [{}, { tool: 7 }, null, 'never', 5])
      expect(() => toolOf(new World(), 'pay', { risk: low, rollback: rollback as never })).toThrow(
        'rollback',
      )
  })
})

test('UAICP-34 cancelling stops the run but not its undo, and nothing starts after it', async () => {
  const { governor, world, time } = await kit()
  const abort = new AbortController()
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', {
    risk: low,
    run: (_args, { signal }) => {
      if (signal.aborted) throw new Error('cancelled')
    },
  })
  const slow = toolOf(world, 'slow', { run: () => new Promise(() => undefined) })
  const task = taskOf({ tools: [write, undo, slow] })
  const started = governor.run(task, { ...init, signal: abort.signal }, async (run) => {
    await run.call(write, { n: 1 })
    await run.call(slow, {}).catch(() => undefined)
    return (await run.call(write, { n: 2 })).result
  })
  await time.advance(10)
  abort.abort()
  await time.advance(1001)
  const result = (await started) as FailedSafe
  expect(codesOf(result)).toEqual(['CANCELLED'])
  expect(result.undo).toMatchObject([{ status: 'done' }])
  expect(world.done).toEqual(['write {"n":1}', 'undo_write {"n":1}'])
})

describe('UAICP-34 an effect in doubt is settled by the probe, or left to a person', () => {
  const cases = [
    ['applied', 'done', true],
    ['absent', undefined, false],
    ['unknown', 'in_doubt', false],
    [undefined, 'in_doubt', false],
  ] as const
  test.each(cases)('UAICP-34 probe says %s: undo is %s', async (answer, status, isUndone) => {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', {
      risk: low,
      rollback: undoBy('write'),
      run: () => {
        throw new Error('connection lost')
      },
      ...(answer && { probe: () => answer }),
    })
    const task = taskOf({ tools: [write, toolOf(world, 'undo_write', { risk: low })] })
    const result = (await governor.run(task, init, async (run) => {
      await run.call(write, {}).catch(() => undefined)
      throw new Error('give up')
    })) as FailedSafe
    expect(result.undo.map((undo) => undo.status)).toEqual(status ? [status] : [])
    expect(codesOf(result).includes('TOOL_IN_DOUBT')).toBe(status === 'in_doubt')
    expect(world.count('undo_write')).toBe(isUndone ? 1 : 0)
  })

  test('UAICP-34 a tool that says it changed nothing is believed', async () => {
    const { governor, world } = await kit()
    const write = toolOf(world, 'write', {
      risk: low,
      run: () => {
        throw new NoEffectError('no such account')
      },
    })
    const result = await governor.run(taskOf({ tools: [write] }), init, async (run) => {
      await run.call(write, {}).catch(() => undefined)
      return 'went without'
    })
    expect(result).toMatchObject({ state: 'deliver' })
  })
})

test('a tool that takes too long is stopped; its write is in doubt', async () => {
  const { governor, world, time } = await kit()
  let aborted = false
  const write = toolOf(world, 'write', {
    risk: low,
    timeoutMs: 50,
    run: (_args, { signal }) =>
      new Promise(() => signal.addEventListener('abort', () => (aborted = true))),
  })
  const started = governor.run(
    taskOf({ tools: [write] }),
    init,
    async (run) => (await run.call(write, {})).result,
  )
  await time.advance(1100)
  expect(codesOf(await started)).toEqual(expect.arrayContaining(['TOOL_TIMEOUT', 'TOOL_IN_DOUBT']))
  expect(aborted).toBe(true)
})

test('a write is refused when its intent cannot be written, and the result says so', async () => {
  for (const isPayload of [true, false]) {
    const base = await kit()
    const world = new World()
    const options: GovernorOptions = {
      ...base.options,
      ...(isPayload
        ? {
            payloads: {
              put: (_hash, _text, put) => {
                if (put?.durable) throw new Error('disk full')
              },
              get: () => '{"wire":"W-1"}',
            },
          }
        : {
            audit: {
              read: (read) => base.log.read(read),
              append: (entry, append) => {
                if (append?.durable) return Promise.reject(new Error('disk full'))
                return base.log.append(entry, append)
              },
            },
          }),
    }
    const write = toolOf(world, 'write', { risk: low })
    const { governor } = await import('../../src/index.ts')
    const result = await governor(options).run(taskOf({ tools: [write] }), init, async (run) => {
      await run.call(write, {}).catch(() => undefined)
      return 1
    })
    expect(codesOf(result)).toContain('AUDIT_UNAVAILABLE')
    expect(world.done).toEqual([])
  }
})

test('UAICP-34 a write whose end cannot be logged is reported as not undone', async () => {
  const { log, options, world } = await kit()
  const audit: GovernorOptions['audit'] = {
    read: (read) => log.read(read),
    append: (entry, append) => {
      if (entry.line.includes('"call_settled"')) throw new Error('disk full')
      return log.append(entry, append)
    },
  }
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const { governor } = await import('../../src/index.ts')
  const task = taskOf({ tools: [write, toolOf(world, 'undo_write')] })
  const result = await governor({ ...options, audit }).run(task, init, async (run) => {
    await run.call(write, {}).catch(() => undefined)
    return 1
  })
  expect(codesOf(result)).toContain('AUDIT_UNAVAILABLE')
  expect(world.done).toEqual(['write {}'])
  expect(result).toMatchObject({
    undo: [{ tool: 'write', action: { target: 'undo_write' }, status: 'failed' }],
  })
})

test('UAICP-34 a write that was running when the log failed is reported as not undone', async () => {
  const { log, restart, world } = await kit()
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  let end = (): void => undefined
  const write = toolOf(world, 'write', {
    risk: low,
    rollback: undoBy('write'),
    run: () => {
      begin()
      return new Promise<void>((resolve) => (end = resolve))
    },
  })
  const read = toolOf(world, 'read')
  const audit: GovernorOptions['audit'] = {
    read: log.read,
    append: (entry, append) => {
      if (entry.line.includes('"call_settled"')) throw new Error('disk full')
      return log.append(entry, append)
    },
  }
  const task = taskOf({ tools: [write, read, toolOf(world, 'undo_write')] })
  const result = await restart({ audit }).run(task, init, async (run) => {
    const writing = run.call(write, { n: 1 }).catch(() => undefined)
    await begun
    await run.call(read, {}).catch(() => undefined)
    end()
    await writing
    return 1
  })
  expect(codesOf(result)).toEqual(['AUDIT_UNAVAILABLE'])
  const { request_id } = (result as FailedSafe).receipt
  expect(result).toMatchObject({
    undo: [
      {
        request_id,
        call: '1.1',
        tool: 'write',
        action: { target: 'undo_write' },
        status: 'failed',
      },
    ],
  })
  expect(world.count('undo_write')).toBe(0)
})

test('arguments are a snapshot: what was judged is what runs', async () => {
  const { governor, sign } = await kit()
  const world = new World()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const args = { to: 'bob' }
  const result = await governor.run(
    task,
    {
      ...init,
      approve: async (request) => {
        args.to = 'eve'
        return { type: 'approve', tokens: [await sign(request)] }
      },
    },
    async (run) => (await run.call(high, args)).result,
  )
  expect(result.state).toBe('deliver')
  expect(world.done).toEqual(['high {"to":"bob"}'])
})

test('a named call that was undone is made anew by a repair, and needs a new approval', async () => {
  const { governor, sign, world } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const read = toolOf(world, 'read')
  const task = taskOf({
    tools: [high, read, toolOf(world, 'undo_high', { risk: low })],
    needs: [{ type: 'tool_result', source: 'read' }],
    repair: { max: 1 },
  })
  const asked: string[] = []
  const keys = new Set<string>()
  const result = await governor.run(
    task,
    {
      ...init,
      approve: async (request) => {
        asked.push(request.id)
        return { type: 'approve', tokens: [await sign(request)] }
      },
    },
    async (run) => {
      const { evidence } = await run.call(high, { n: 1 }, { id: 'pay' })
      keys.add(evidence.evidence_id)
      if (run.attempt === 2) await run.call(read, {})
      return 1
    },
  )
  expect(result.state).toBe('deliver')
  expect(asked).toHaveLength(2)
  expect(keys.size).toBe(2)
  expect(world.done).toEqual(['high {"n":1}', 'undo_high {"n":1}', 'high {"n":1}', 'read {}'])
})

test('a named call that stands is not made again when a repair keeps what was done', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: low })
  const read = toolOf(world, 'read')
  const task = taskOf({
    tools: [write, read],
    needs: [{ type: 'tool_result', source: 'read' }],
    repair: { max: 1, to: 'execute', undoFirst: false },
  })
  const result = await governor.run(task, init, async (run) => {
    await run.call(write, { n: 1 }, { id: 'once' })
    if (run.attempt === 2) await run.call(read, {})
    return run.evidence.length
  })
  expect(result).toMatchObject({ state: 'deliver', value: 2 })
  expect(world.done).toEqual(['write {"n":1}', 'read {}'])
})

test('cancel stops a run that is going on in this process', async () => {
  const { governor, world, time } = await kit()
  const slow = toolOf(world, 'slow', { run: () => new Promise(() => undefined) })
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const task = taskOf({ tools: [slow, write, toolOf(world, 'undo_write', { risk: low })] })
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const running = governor.run(task, { ...init, request_id }, async (run) => {
    await run.call(write, {})
    return (await run.call(slow, {})).result
  })
  await time.advance(1)
  const cancelled = governor.cancel(request_id)
  await time.advance(1001)
  expect(codesOf(await running)).toEqual(['CANCELLED'])
  expect(await cancelled).toMatchObject({ state: 'fail_safe', undo: [{ status: 'done' }] })
})

test('a deadline further away than a timer can count does not come early', async () => {
  const { governor, world, time } = await kit({})
  const slow = toolOf(world, 'slow', { run: () => new Promise((go) => setImmediate(go)) })
  const task = taskOf({ tools: [slow], limits: { deadlineMs: 1e12 } })
  const short = (await import('../../src/index.ts')).governor({
    ...(await kit()).options,
    timer: (ms, fire) => time.timer(Math.min(ms, 5), fire),
    clock: time,
  })
  const running = short.run(task, init, async (run) => {
    await time.advance(20)
    return (await run.call(slow, {})).result
  })
  expect(await running).toMatchObject({ state: 'deliver' })
  expect(governor.id).toBe('governor.test')
})

test('intents, inversions and ends are durable, high-risk intents sealed; reads are buffered', async () => {
  const made = await kit()
  const { world } = made
  const kept: string[] = []
  const audit = {
    read: made.log.read,
    append: (entry: JournalEntry, options?: AuditAppendOptions) => {
      const type = /"uaicp:event":"(\w+)"/.exec(entry.line)?.[1]
      const state = /"state":"(\w+)"/.exec(entry.line)?.[1]
      if (options?.durable) kept.push(`${type} ${state}${options.seal ? ' sealed' : ''}`)
      return made.log.append(entry, options)
    },
  }
  const read = toolOf(world, 'read')
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('write') })
  const task = taskOf({ tools: [read, write, high, toolOf(world, 'undo_write', { risk: low })] })
  const governor = made.restart({ audit })
  await governor.run(task, { ...init, approve: made.yes }, async (run) => {
    await run.call(read, {})
    await run.call(write, {})
    await run.call(high, {})
    throw new Error('no')
  })
  expect(kept).toEqual([
    'call_started execute',
    'review_requested execute',
    'call_started execute sealed',
    'transition fail_safe',
    'undo_started fail_safe',
    'undo_started fail_safe',
    'failed_safe fail_safe',
  ])
  kept.length = 0
  await governor.run(task, init, async () => 1)
  expect(kept).toEqual(['delivered deliver'])
})

test('a run that is stopped while policy thinks writes no intent', async () => {
  const abort = new AbortController()
  const { governor, world, entries } = await kit({
    policy: {
      id: 'slow',
      hash: hashJson('slow'),
      decide: async () => {
        abort.abort()
        return { effect: 'allow' }
      },
    },
  })
  const write = toolOf(world, 'write', { risk: low })
  const task = taskOf({ tools: [write] })
  const result = await governor.run(task, { ...init, signal: abort.signal }, async (run) => {
    await run.call(write, {})
    return 1
  })
  expect(codesOf(result)).toContain('CANCELLED')
  expect((await entries()).map(({ type }) => type)).not.toContain('call_started')
  expect(world.done).toEqual([])
})

test('UAICP-34 what a person found absent is not inverted', async () => {
  const { governor, world } = await kit()
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const task = taskOf({ tools: [write, toolOf(world, 'undo_write', { risk: low })] })
  const opened = await governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  await governor.admit(id, { id: 'w', tool: 'write', args: {} })
  const lost = { type: 'error', reasons: [{ code: 'TOOL_TIMEOUT' }], effect: 'in_doubt' } as const
  await governor.settle(id, 'w', lost)
  await governor.settleInDoubt(id, 'w', 'absent')
  expect(await governor.cancel(id)).toMatchObject({ state: 'fail_safe', undo: [] })
  expect(world.done).toEqual([])
})

test('a run that is stopped while its intent is written does not start the tool', async () => {
  const abort = new AbortController()
  const made = await kit()
  const { world } = made
  const governor = made.restart({
    audit: {
      read: made.log.read,
      append: (entry, options) => {
        if (entry.line.includes('"call_started"')) abort.abort()
        return made.log.append(entry, options)
      },
    },
  })
  const write = toolOf(world, 'write', { risk: low })
  const task = taskOf({ tools: [write] })
  const result = await governor.run(task, { ...init, signal: abort.signal }, async (run) => {
    await run.call(write, {})
    return 1
  })
  expect(result).toMatchObject({ state: 'fail_safe', undo: [] })
  expect(world.done).toEqual([])
  const settled = (await made.entries()).find(({ type }) => type === 'call_settled')
  expect(settled?.data).toMatchObject({ effect: 'absent', reasons: [{ code: 'CANCELLED' }] })
})

describe('what undoes a write is gone after a deploy', () => {
  /** Two writes; the process dies while the later one is undone. Returns a governor that has `tools` then. */
  async function diedWhileUndoing(
    later: Partial<GovernorOptions> & {
      readonly keepsTool: boolean
      readonly idempotent?: boolean
      readonly probe?: () => 'applied' | 'absent'
    },
  ) {
    const { keepsTool, idempotent, probe, ...options } = later
    const made = await kit({ undoers: { http: () => undefined } })
    const { world } = made
    const write = toolOf(world, 'write', {
      risk: low,
      rollback: undoBy('write'),
      ...(probe && { probe }),
    })
    const post = toolOf(world, 'post', {
      risk: low,
      rollback: () => ({ type: 'http', target: 'https://x.test/1', payload: {} }),
    })
    const other = toolOf(world, 'other', { risk: low, rollback: undoBy('other') })
    const undoOther = toolOf(world, 'undo_other', { risk: low })
    const keys: string[] = []
    const undoWrite = toolOf(world, 'undo_write', {
      risk: low,
      ...(idempotent !== undefined && { idempotent }),
      run: (_args, { idempotencyKey }) => void keys.push(idempotencyKey),
    })
    const before = taskOf({ tools: [other, post, write, undoOther, undoWrite] })
    let die = (): void => undefined
    const died = new Promise<void>((resolve) => (die = resolve))
    const dying = made.restart({
      undoers: { http: () => undefined },
      audit: {
        read: made.log.read,
        append: (entry, given) => {
          if (!entry.line.includes('"undo_settled"')) return made.log.append(entry, given)
          die()
          return new Promise(() => {}) // nothing happens any more in this process
        },
      },
    })
    const opened = await dying.open(before, init)
    const id = opened.type === 'opened' ? opened.request_id : ''
    for (const tool of ['other', 'post', 'write']) {
      await dying.admit(id, { id: tool, tool, args: {} })
      await dying.settle(id, tool, { type: 'result', value: 1 })
    }
    void dying.cancel(id)
    await died
    const after = taskOf({
      tools: [other, post, write, undoOther, ...(keepsTool ? [undoWrite] : [])],
    })
    const governor = made.restart({ ...options, tasks: [after] })
    return { id, governor, entries: made.entries, keys }
  }

  test.each([
    ['is idempotent', { idempotent: true }, 'done', 2, 1],
    ['is not idempotent', { idempotent: false }, 'unknown', 1, 0],
    ['is not needed any more', { probe: () => 'absent' as const }, 'done', 1, 0],
    ['has not had its effect', { probe: () => 'applied' as const }, 'done', 2, 1],
  ])(
    'UAICP-34 an inversion that a crash cut off and that %s',
    async (_name, given, status, runs, tries) => {
      const { id, governor, keys, entries } = await diedWhileUndoing({
        keepsTool: true,
        undoers: { http: () => undefined },
        ...given,
      })
      expect(await governor.cancel(id)).toMatchObject({ undo: [{ tool: 'write', status }, {}, {}] })
      expect(keys).toEqual(Array.from({ length: runs }, () => `${id}/write@1:undo`))
      const settled = (await entries()).find(({ type }) => type === 'undo_settled')
      const error = status === 'unknown' && { error: 'it may have run before a crash' }
      expect(settled?.data).toEqual({ request_id: id, call: 'write', status, tries, ...error })
      const started = (await entries()).filter(({ type }) => type === 'undo_started')
      expect(started).toHaveLength(3)
      expect(started[0]).toMatchObject({
        data: { request_id: id, call: 'write' },
        envelope: {
          outcome: 'pending',
          rollback_action: { type: 'tool_call', target: 'undo_write', payload: {} },
        },
      })
    },
  )

  test('a tool that may have run before a crash: unknown, with the reason; the rest is undone', async () => {
    const { id, governor, entries } = await diedWhileUndoing({
      keepsTool: false,
      undoers: { http: () => undefined },
    })
    const result = await governor.cancel(id)
    expect(result).toMatchObject({
      state: 'fail_safe',
      undo: [
        {
          tool: 'write',
          status: 'unknown',
          error: expect.stringContaining('no tool "undo_write"') as string,
        },
        { tool: 'post', status: 'done' },
        { tool: 'other', status: 'done' },
      ],
    })
    const settled = (await entries()).filter(({ type }) => type === 'undo_settled')
    expect(settled.map(({ data }) => (data as { status: string }).status)).toEqual([
      'unknown',
      'done',
      'done',
    ])
  })

  test('a function for other kinds of undoing that is missing is a failure, not a success', async () => {
    const { id, governor } = await diedWhileUndoing({ keepsTool: true, undoers: {} })
    expect(await governor.cancel(id)).toMatchObject({
      undo: [
        { tool: 'write', status: 'unknown' },
        { tool: 'post', status: 'failed', error: expect.stringContaining('"http"') as string },
        { tool: 'other', status: 'done' },
      ],
    })
  })
})

test('UAICP-34 a log that fails while writes are undone: the result says what was undone, what was not, and why all this', async () => {
  const made = await kit()
  const { world, log } = made
  let undos = 0
  const governor = made.restart({
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (entry.line.includes('"undo_started"') && ++undos === 2) throw new Error('disk full')
        return log.append(entry, options)
      },
    },
  })
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const tools = [write, toolOf(world, 'undo_write', { risk: low })]
  const ids: string[] = []
  const result = await governor.run(taskOf({ tools, needs: [never] }), init, async (run) => {
    ids.push(run.request_id, run.trace_id)
    for (const n of [1, 2]) await run.call(write, { n })
    return 1
  })
  const [request_id, trace_id] = ids
  expect(result).toEqual({
    state: 'fail_safe',
    outcome: 'uncertain',
    reasons: [
      { code: 'AUDIT_UNAVAILABLE', subject: request_id },
      { code: 'EVIDENCE_MISSING', subject: 'test_report', detail: '0 of 1' },
    ],
    missing: [{ type: 'test_report', min: 1, found: 0 }],
    undo: [
      {
        request_id,
        call: '1.2',
        tool: 'write',
        action: { type: 'tool_call', target: 'undo_write', payload: { n: 2 } },
        status: 'done',
      },
      {
        request_id,
        call: '1.1',
        tool: 'write',
        action: { type: 'tool_call', target: 'undo_write', payload: { n: 1 } },
        status: 'failed',
        error: 'not attempted: the log cannot be written',
      },
    ],
    receipt: { request_id, trace_id, first: 0, last: (await made.entries()).length - 1 },
  })
  // The next process goes on where this one stopped.
  const later = made.restart({ tasks: [taskOf({ tools, needs: [never] })] })
  expect(await later.cancel(request_id!)).toMatchObject({
    reasons: [{ code: 'EVIDENCE_MISSING' }],
    undo: [
      { call: '1.2', status: 'done' },
      { call: '1.1', status: 'done' },
    ],
  })
  expect(world.count('undo_write')).toBe(2)
})

test('UAICP-27 a result says where its entries are, with a checkpoint if the log makes one', async () => {
  const made = await kit()
  const { log } = made
  await made.governor.run(taskOf({ tools: [] }), init, async () => 1)
  const before = (await made.entries()).length
  const sealing = {
    append: log.append,
    read: log.read,
    seal: () => Promise.reject(new Error('no key')),
  }
  for (const [audit, hasCheckpoint] of [
    [log, true],
    [{ append: log.append, read: log.read }, false],
    [sealing, false],
  ] as const) {
    const first = (await made.entries()).length
    const result = await made.restart({ audit }).run(taskOf({ tools: [] }), init, async (run) => ({
      request_id: run.request_id,
      trace_id: run.trace_id,
    }))
    if (result.state !== 'deliver') throw new Error(result.state)
    const { checkpoint, ...receipt } = result.receipt
    expect(checkpoint !== undefined).toBe(hasCheckpoint)
    const last = (await made.entries()).length - 1
    expect(receipt).toEqual({ ...result.value, first, last })
  }
  expect(before).toBeGreaterThan(0)
})

test('UAICP-34 what was undone before a crash is not undone again', async () => {
  const made = await kit()
  const { world, log } = made
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const task = taskOf({ tools: [write, toolOf(world, 'undo_write', { risk: low })] })
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const dying = made.restart({
    audit: {
      read: log.read,
      append: (entry, options) => {
        if (entry.line.includes('"failed_safe"')) throw new Error('gone')
        return log.append(entry, options)
      },
    },
  })
  await dying.run(task, { ...init, request_id }, async (run) => {
    await run.call(write, {})
    throw new Error('give up')
  })
  expect(await made.restart({ tasks: [task] }).cancel(request_id)).toMatchObject({
    reasons: [{ code: 'RUN_ERROR', detail: 'give up' }],
    undo: [{ request_id, call: '1.1', tool: 'write', status: 'done' }],
  })
  expect(world.count('undo_write')).toBe(1)
})

test('UAICP-26 a function that undoes gets the action and the context of its call', async () => {
  const seen: unknown[] = []
  const { governor, world } = await kit({
    undoers: {
      http: (action, { signal, chunk: _chunk, ...context }) => {
        seen.push(action, context, signal.aborted)
      },
    },
  })
  const action = { type: 'http', target: 'https://x.test/1', payload: 'DELETE' }
  const write = toolOf(world, 'write', { risk: low, rollback: () => action })
  const ids: string[] = []
  const result = await governor.run(taskOf({ tools: [write] }), init, async (run) => {
    ids.push(run.request_id, run.trace_id)
    await run.call(write, {})
    throw new Error('give up')
  })
  expect(result).toMatchObject({ undo: [{ action, status: 'done' }] })
  const [requestId, traceId] = ids
  const idempotencyKey = `${requestId}/1.1@1:undo`
  expect(seen).toEqual([action, { idempotencyKey, requestId, traceId, callId: '1.1' }, false])
})

test('UAICP-34 an inversion that hangs is stopped and tried again, as often as the limits say', async () => {
  const { governor, world, time } = await kit({ limits: { undoTimeoutMs: 50, undoTries: 2 } })
  const signals: AbortSignal[] = []
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const write = toolOf(world, 'write', { risk: low, rollback: undoBy('write') })
  const undo = toolOf(world, 'undo_write', {
    risk: low,
    run: (_args, { signal }) => {
      signals.push(signal)
      begin()
      return new Promise(() => undefined)
    },
  })
  const running = governor.run(taskOf({ tools: [write, undo] }), init, async (run) => {
    await run.call(write, {})
    throw new Error('give up')
  })
  await begun
  await time.advance(49)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  await time.advance(1)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  await time.advance(50)
  expect(await running).toMatchObject({
    undo: [{ status: 'failed', error: 'There was no answer within 50 ms.' }],
  })
  expect(signals).toHaveLength(2)
})

test('UAICP-34 an effect in doubt is undone when its probe finds nothing left', async () => {
  const { governor, world } = await kit()
  const answers = ['unknown', 'absent'] as const
  let asked = 0
  const write = toolOf(world, 'write', {
    risk: low,
    rollback: undoBy('write'),
    run: () => {
      throw new Error('connection lost')
    },
    probe: () => answers[asked++]!,
  })
  const task = taskOf({ tools: [write, toolOf(world, 'undo_write', { risk: low })] })
  const result = await governor.run(task, init, async (run) => (await run.call(write, {})).result)
  expect(result).toMatchObject({ undo: [{ tool: 'write', status: 'done' }] })
  expect(codesOf(result)).toEqual(['TOOL_ERROR', 'TOOL_IN_DOUBT'])
})

test('UAICP-34 a call in doubt whose arguments were erased stays in doubt', async () => {
  const payloads = memoryPayloads()
  const made = await kit({ payloads })
  const write = toolOf(made.world, 'write', { risk: low, probe: () => 'absent' })
  const task = taskOf({ tools: [write] })
  const opened = await made.governor.open(task, init)
  const id = opened.type === 'opened' ? opened.request_id : ''
  await made.governor.admit(id, { id: 'w', tool: 'write', args: { n: 7 } })
  payloads.erase(hashJson({ n: 7 }))
  expect(await made.restart({ tasks: [task] }).recoverCall(id, 'w')).toBe('in_doubt')
})
