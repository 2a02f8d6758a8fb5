import { describe, expect, test } from 'vitest'
import { rules, standardPolicy } from '@skein/governance'
import { agentOf, kit, requestOf, toolOf, undoBy } from '../../test/governance/governed-kit.ts'
import { isStoreError } from '../store/store-error.ts'
import { createApprovalSigner } from './approval-signer.ts'
import { memoryGovernanceKeys } from './governance-keys.ts'

const read = toolOf('read')
const low = toolOf('low', { risk: 'write_low_risk' })
const high = toolOf('high', { risk: 'write_high_risk', rollback: undoBy('high') })
const undoHigh = toolOf('undo_high', { risk: 'write_low_risk' })
const tools = [read, low, high, undoHigh]
const pay = { id: 'pay', tool: 'high', args: { amount: 5 } }
const result = { type: 'result', value: { ok: true } } as const

describe('the gate before a call', () => {
  test('reads and low-risk writes run, and leave events without arguments or results', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    for (const tool of ['read', 'low']) {
      const call = { id: tool, tool, args: { note: 'canary-arguments' } }
      expect(await made.admit(governor, call)).toMatchObject({ type: 'allow' })
      const outcome = { type: 'result', value: 'canary-result' } as const
      expect(await governor.settle(tool, outcome, 'turn-1')).toMatchObject({ type: 'done' })
      await made.commit(governor)
    }
    const at = '2026-03-01T12:00:00.000Z'
    const place = { at, turnId: 'turn-1' }
    const events = await made.events()
    expect(events).toEqual(
      ['read', 'low'].flatMap((toolCallId) => [
        { type: 'gate_decided', gate: 'pre_action', decision: 'allow', toolCallId, ...place },
        {
          type: 'evidence_added',
          evidenceId: expect.stringMatching(/#\d+$/) as string,
          kind: 'tool_result',
          summary: `tool_result of ${toolCallId}`,
          data: { hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string },
          toolCallId,
          ...place,
        },
      ]),
    )
    const log = (await made.store.audit('thread-1')).map(({ line }) => line).join('\n')
    expect(JSON.stringify(events) + log).not.toContain('canary')
    expect(await made.verify()).toMatchObject({ ok: true, faults: [] })
  })

  test('payloads are blobs under the hash that the log names', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    await made.admit(governor, { id: 'a', tool: 'read' })
    const settled = await governor.settle('a', { type: 'result', value: { b: 'ü', a: 1 } }, 't')
    await made.commit(governor)
    if (settled.type !== 'done') throw new Error(settled.type)
    const bytes = await made.store.blob(settled.evidence.hash.slice('sha256:'.length))
    expect(new TextDecoder().decode(bytes)).toBe('{"a":1,"b":"ü"}')
  })

  test('an intent is in the store before the tool can run, and nothing is there before the commit', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    await governor.admit({ id: 'w', tool: 'low', args: {}, turnId: 't' })
    expect(await made.entries()).toEqual([])
    await made.commit(governor)
    expect((await made.entries()).at(-1)).toMatchObject({
      type: 'call_started',
      data: { call: 'w' },
    })
    expect(governor.takeWrites()).toEqual({ audit: [], spent: [], blobs: [], events: [] })
  })

  test('a tool that is none of the session’s is denied', async () => {
    const made = await kit({ tools: [read] })
    const governor = await made.open()
    expect(await made.admit(governor, { id: 'x', tool: 'high' })).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'TOOL_UNKNOWN' }],
    })
    expect(await made.events()).toMatchObject([
      { decision: 'deny', reasonCodes: ['TOOL_UNKNOWN'], toolCallId: 'x' },
    ])
  })

  test('the policy can be replaced, and several are heard', async () => {
    const never = rules([{ when: ({ tool }) => tool === 'low', effect: 'deny' }], { id: 'never' })
    const made = await kit({ tools, options: { policy: [standardPolicy, never] } })
    const governor = await made.open()
    expect(await made.admit(governor, { id: 'a', tool: 'low' })).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'POLICY_BLOCKED' }],
    })
    expect(await made.admit(governor, pay)).toMatchObject({ type: 'review' })
  })

  test('a call that a drain before admitted is settled by the next one, read or write', async () => {
    const made = await kit({ tools })
    const first = await made.open()
    await made.admit(first, { id: 'r', tool: 'read' })
    await made.admit(first, { id: 'w', tool: 'low' })
    const second = await made.open()
    const [reading, writing] = [
      { tool: 'read', args: {} },
      { tool: 'low', args: {} },
    ]
    expect(await second.settle('r', result, 't', reading)).toMatchObject({ type: 'done' })
    expect(await second.settle('w', result, 't', writing)).toMatchObject({ type: 'done' })
    await made.commit(second)
    expect(await (await made.open()).deliver('done')).toMatchObject({ type: 'delivered' })
  })

  test('events may name a call otherwise than the log does', async () => {
    const made = await kit({ tools })
    const call = { id: 'message-1:c', toolCallId: 'c', tool: 'read', args: {}, turnId: 't' }
    const governor = await made.open()
    await governor.admit(call)
    await governor.settle(call.id, result, 't')
    await made.commit(governor)
    await governor.admit({ ...call, id: 'message-2:c' })
    await made.commit(governor)
    const { tool, args, toolCallId } = call
    const next = await made.open()
    await next.settle('message-2:c', result, 't', { tool, args, toolCallId })
    await made.commit(next)
    expect((await made.events()).map((event) => 'toolCallId' in event && event.toolCallId)).toEqual(
      ['c', 'c', 'c', 'c'],
    )
    expect((await made.entries()).at(-1)?.data['call']).toBe('message-2:c')
  })

  test('reads at the same time after a restart are of one request', async () => {
    const made = await kit({ tools })
    await made.commit(await made.open())
    const governor = await made.open()
    const ids = ['a', 'b', 'c']
    await Promise.all(ids.map((id) => governor.admit({ id, tool: 'read', args: {}, turnId: 't' })))
    await Promise.all(ids.map((id) => governor.settle(id, result, 't')))
    await made.commit(governor)
    expect(await made.verify()).toMatchObject({ ok: true })
    expect((await made.entries()).filter(({ type }) => type === 'call_settled')).toHaveLength(3)
  })
})

describe('approval', () => {
  test('a high-risk call waits, runs once with a token, and then answers from the record', async () => {
    const made = await kit({ tools })
    const asking = requestOf(await made.admit(await made.open(), pay))
    expect(await made.events()).toMatchObject([
      { decision: 'review', reasonCodes: ['APPROVAL_REQUIRED'] },
    ])
    const token = await made.sign(asking)
    const governor = await made.open()
    expect(await made.admit(governor, pay, token)).toMatchObject({
      type: 'allow',
      call: { args: { amount: 5 }, risk: 'write_high_risk' },
    })
    await governor.settle('pay', { type: 'result', value: { ref: 'R1' } }, 'turn-1')
    await made.commit(governor)
    expect(await made.admit(await made.open(), pay, token)).toMatchObject({
      type: 'replay',
      result: { ref: 'R1' },
    })
    expect((await made.entries()).filter(({ type }) => type === 'call_started')).toHaveLength(1)
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('a token for one call is of no use for another', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    const token = await made.sign(requestOf(await made.admit(governor, pay)))
    const others = [
      { ...pay, id: 'again' },
      { ...pay, id: 'more', args: { amount: 6 } },
    ]
    for (const other of others) {
      expect(await made.admit(governor, other, token)).toMatchObject({
        type: 'review',
        rejected: { code: 'APPROVAL_SCOPE' },
      })
    }
    expect((await made.events()).at(-1)).toMatchObject({ reasonCodes: ['APPROVAL_SCOPE'] })
  })

  test.each(['in the same process', 'after a restart'])(
    'a spent token does not approve the call anew when it was undone, %s',
    async (where) => {
      const taskClass = {
        name: 'paying',
        needs: [{ type: 'tool_result', source: 'read' }],
        verifiers: [],
        repair: { max: 1 },
      } as const
      const made = await kit({ tools, taskClass })
      let governor = await made.open()
      const token = await made.sign(requestOf(await made.admit(governor, pay)))
      await made.admit(governor, pay, token)
      await governor.settle('pay', result, 't')
      expect(await governor.deliver('early')).toMatchObject({ type: 'repair', attempt: 2 })
      await made.commit(governor)
      if (where === 'after a restart') governor = await made.open()
      expect(await made.admit(governor, pay, token)).toMatchObject({
        type: 'review',
        rejected: { code: 'APPROVAL_REPLAYED' },
      })
    },
  )

  test('a token spent elsewhere fails the commit; asked again without it, a person decides anew', async () => {
    const made = await kit({ tools })
    const token = await made.sign(requestOf(await made.admit(await made.open(), pay)))
    const elsewhere = await made.open()
    await elsewhere.admit({ ...pay, turnId: 't' }, { type: 'approve', tokens: [token] })
    await made.store.commit({
      point: 'another system',
      threads: [],
      spent: elsewhere.takeWrites().spent,
    })

    const governor = await made.open()
    const failed = made.admit(governor, pay, token)
    await expect(failed).rejects.toSatisfy((error) => isStoreError(error, 'TOKEN_SPENT'))
    const again = await made.open()
    const asked = requestOf(await made.admit(again, pay))
    expect(await made.admit(again, pay, await made.sign(asked))).toMatchObject({ type: 'allow' })
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('a denial is final for the call, and needs no signature', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    const asked = requestOf(await made.admit(governor, pay))
    const denied = { type: 'deny', reason: 'too much', by: { type: 'human', id: 'pat' } } as const
    const denial = await governor.admit({ ...pay, turnId: 't' }, denied)
    expect(denial).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'APPROVAL_DENIED', detail: 'too much' }],
    })
    await made.commit(governor)
    expect(await made.admit(await made.open(), pay, await made.sign(asked))).toMatchObject({
      type: 'deny',
    })
    expect(await (await made.open()).deliver('sorry')).toMatchObject({ type: 'delivered' })
  })

  test('a token that is over is refused, and the question is asked anew', async () => {
    const made = await kit({ tools, options: { limits: { approvalTtlMs: 60_000 } } })
    const governor = await made.open()
    const asked = requestOf(await made.admit(governor, pay))
    const token = await made.sign(asked)
    made.clock.advance(120_000)
    const again = await made.admit(governor, pay, token)
    expect(again).toMatchObject({ type: 'review', rejected: { code: 'APPROVAL_EXPIRED' } })
    expect(requestOf(again).expires_at > asked.expires_at).toBe(true)
    expect(await made.admit(governor, pay, await made.sign(requestOf(again)))).toMatchObject({
      type: 'allow',
    })
  })

  test('a token by another key, for another installation, or of the agent itself is refused', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    const asked = requestOf(await made.admit(governor, pay))
    const { clock, keys, ids } = made
    const strangers = [
      createApprovalSigner({ id: 'runtime.test', keys: memoryGovernanceKeys(), clock, ids }),
      createApprovalSigner({ id: 'other.test', keys, clock, ids }),
    ]
    for (const stranger of strangers) {
      const token = await stranger.signApproval(asked, { by: 'pat' })
      expect(await made.admit(governor, pay, token)).toMatchObject({
        type: 'review',
        rejected: { code: 'APPROVAL_INVALID' },
      })
    }
    await expect(made.sign(asked, 'clerk')).rejects.toThrow(/may not approve/)
    expect((await made.entries()).some(({ type }) => type === 'call_started')).toBe(false)
  })
})

describe('the gate before delivery', () => {
  const taskClass = {
    name: 'report',
    needs: [{ type: 'tool_result', source: 'read' }],
    verifiers: [
      {
        id: 'short',
        timeoutMs: 500,
        check: (_evidence: unknown, { candidate }: { candidate: unknown }) => [
          { check_id: 'length', result: String(candidate).length < 10 ? 'pass' : 'fail' } as const,
        ],
      },
    ],
    repair: { max: 1 },
  } as const

  test('a session without a task class is delivered, also with a write in doubt', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    await made.admit(governor, { id: 'w', tool: 'low' })
    const why = [{ code: 'TOOL_ERROR' }] as const
    await governor.settle('w', { type: 'error', reasons: why, effect: 'in_doubt' }, 't')
    expect(await governor.deliver('half a \ud800 character')).toMatchObject({ type: 'delivered' })
    await made.commit(governor)
    expect((await made.events()).at(-1)).toEqual({
      type: 'gate_decided',
      gate: 'pre_deliver',
      decision: 'delivered',
      at: '2026-03-01T12:00:00.000Z',
    })
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('what is missing is repaired, and what then holds is delivered, in another process', async () => {
    const made = await kit({ tools, taskClass })
    const first = await made.open()
    expect(await first.deliver('early')).toMatchObject({
      type: 'repair',
      why: [{ code: 'EVIDENCE_MISSING' }],
    })
    await made.commit(first)
    const second = await made.open()
    await made.admit(second, { id: 'r', tool: 'read' })
    await second.settle('r', result, 't')
    await made.commit(second)
    const delivery = await (await made.open()).deliver('good')
    expect(delivery).toMatchObject({ type: 'delivered', result: { value: 'good' } })
  })

  test('what a verifier refuses twice fails safe, and the writes are inverted', async () => {
    const inverted: unknown[] = []
    const undo = toolOf('undo_low', { risk: 'write_low_risk' }, (args) => inverted.push(args))
    const write = toolOf('low', { risk: 'write_low_risk', rollback: undoBy('low') })
    const made = await kit({ tools: [read, write, undo], taskClass })
    const governor = await made.open()
    for (const [id, tool] of [
      ['r', 'read'],
      ['w', 'low'],
    ] as const) {
      await made.admit(governor, { id, tool, args: { id } })
      await governor.settle(id, result, 't')
    }
    expect(await governor.deliver('much too long')).toMatchObject({
      type: 'repair',
      why: [{ code: 'VERIFICATION_FAILED' }],
    })
    expect(inverted).toEqual([{ id: 'w' }])
    const reasons = [{ code: 'VERIFICATION_FAILED' }, { code: 'REPAIR_EXHAUSTED' }]
    expect(await governor.deliver('again too long')).toMatchObject({ type: 'failing', reasons })
    expect(await governor.fail('fail_safe', 'too long')).toMatchObject({ reasons })
    await made.commit(governor)
    expect((await made.events()).at(-1)).toMatchObject({
      decision: 'fail_safe',
      reasonCodes: ['VERIFICATION_FAILED', 'REPAIR_EXHAUSTED'],
    })
    expect(await made.verify()).toMatchObject({ ok: true })
    expect(await (await made.open()).deliver('good')).toMatchObject({ type: 'failing', reasons })
  })

  test('a task class with a write in doubt fails safe', async () => {
    const made = await kit({ tools, taskClass: { ...taskClass, needs: [] } })
    const governor = await made.open()
    await made.admit(governor, { id: 'w', tool: 'low' })
    const why = [{ code: 'TOOL_ERROR' }] as const
    await governor.settle('w', { type: 'error', reasons: why, effect: 'in_doubt' }, 't')
    expect(await governor.deliver('good')).toMatchObject({
      type: 'failing',
      reasons: [{ code: 'TOOL_IN_DOUBT' }],
    })
  })

  test('an agent that was changed while its session waited is judged by its present rules', async () => {
    const made = await kit({ tools })
    await made.commit(await made.open())
    const governor = await made.open({ agent: agentOf({ ...taskClass, repair: { max: 0 } }) })
    expect(await governor.deliver('good')).toMatchObject({
      type: 'failing',
      reasons: [{ code: 'EVIDENCE_MISSING' }, { code: 'REPAIR_EXHAUSTED' }],
    })
  })

  test('a delivery is the same when it is asked for again', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    await governor.deliver('first')
    await made.commit(governor)
    const again = await made.open()
    expect(await again.deliver('second')).toMatchObject({ type: 'delivered' })
    again.takeWrites()
    await again.fail('stopped', 'too late')
    expect(again.takeWrites()).toMatchObject({ audit: [], events: [] })
    expect(await made.admit(again, { id: 'r', tool: 'read' })).toMatchObject({
      type: 'deny',
      reasons: [{ code: 'STATE_CONFLICT' }],
    })
  })
})

describe('a session that fails', () => {
  const write = toolOf('low', { risk: 'write_low_risk', rollback: undoBy('low') })

  test('inverts its writes with the state it is given, after the intent was committed', async () => {
    const undo = toolOf('undo_low', { risk: 'write_low_risk' })
    const made = await kit({ tools: [write, undo] })
    const seen: unknown[] = []
    const governors = made.restart({
      async undo({ session, tool, args, callId }) {
        const last = (await made.entries()).at(-1)
        seen.push([session.threadId, tool.name, args, callId, last?.type])
      },
    })
    const governor = await governors.open({
      ...made.session,
      commit: async ({ events, ...writes }) => {
        const threads = [{ id: 'thread-1', append: events }]
        await made.store.commit({ point: 'undo', threads, ...writes })
      },
    })
    await made.admit(governor, { id: 'w', tool: 'low', args: { n: 1 } })
    await governor.settle('w', result, 't')
    await made.commit(governor)
    await governor.fail('max_session_turns', 'The session took too many turns.')
    await made.commit(governor)
    expect(seen).toEqual([['thread-1', 'undo_low', { n: 1 }, 'w', 'undo_started']])
    expect((await made.entries()).at(-1)).toMatchObject({
      type: 'failed_safe',
      data: {
        reasons: [{ code: 'RUN_ERROR', subject: 'max_session_turns' }],
        undo: [{ call: 'w', status: 'done' }],
      },
    })
    expect((await made.events()).at(-1)).toMatchObject({
      decision: 'fail_safe',
      reasonCodes: ['RUN_ERROR'],
    })
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('is told as cancelled when a person stopped it, also while a call waits', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    await made.admit(governor, pay)
    await governor.fail('stopped', 'by uma')
    await made.commit(governor)
    expect((await made.entries()).at(-1)).toMatchObject({
      data: { reasons: [{ code: 'CANCELLED', subject: 'stopped', detail: 'by uma' }] },
    })
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('an inverse that asks for a thread nobody gives it has failed, and the log says so', async () => {
    const undo = {
      ...toolOf('undo_low', { risk: 'write_low_risk' }),
      run: async (_args: unknown, { state }: { state: { threadId: string } }) => state.threadId,
    }
    const made = await kit({ tools: [write, undo as never] })
    const governor = await made.open()
    await made.admit(governor, { id: 'w', tool: 'low' })
    await governor.settle('w', result, 't')
    await governor.fail('terminated', '')
    await made.commit(governor)
    expect((await made.entries()).at(-1)).toMatchObject({
      data: { undo: [{ status: 'failed', error: expect.stringContaining('thread') as string }] },
    })
  })
})

test('the request is the session’s own id where that is a UUID, and else always the same', async () => {
  const sessionId = '0199aaaa-0000-7000-8000-000000000001'
  const made = await kit({ tools, sessionId })
  expect((await made.open()).requestId).toBe(sessionId)
  const odd = await made.open({ sessionId: 'session-1' })
  expect(odd.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-/)
  expect((await made.open({ sessionId: 'session-1' })).requestId).toBe(odd.requestId)
  const other = await made.open({ sessionId: 'session-1', threadId: 'thread-2' })
  expect(other.requestId).not.toBe(odd.requestId)
})

test('entries say for whom the agent acts, in which thread', async () => {
  const made = await kit({ tools })
  await made.commit(await made.open())
  const [first] = await made.store.audit('thread-1')
  expect(JSON.parse(first?.line ?? '')).toMatchObject({
    identity: {
      agent_id: 'clerk',
      owner_id: 'acme',
      user_id: 'uma',
      control_class: 'human-supervised',
      'skein:thread': 'thread-1',
    },
  })
})
