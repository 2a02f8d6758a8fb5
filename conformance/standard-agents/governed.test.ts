import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { verifyAudit, type AgentDefinition } from '@skein/runtime'
import { linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

/** Tools of each risk, and what they did. */
function tools() {
  const did: string[] = []
  const act = (name: string) => (_: unknown, args: Record<string, unknown>) => {
    did.push(`${name} ${JSON.stringify(args)}`)
    return `${name} done`
  }
  return {
    did,
    note: tool('note', act('note'), { risk: 'write_low_risk' }),
    refund: tool('refund', act('refund'), { risk: 'write_low_risk' }),
    pay: tool('pay', act('pay'), {
      risk: 'write_high_risk',
      rollback: () => ({ type: 'tool_call', target: 'refund', payload: { amount: 9 } }),
    }),
  }
}

const verified = async (it: Simulation, id: string) => {
  const audit = await it.threads.audit(id)
  const verdict = await verifyAudit(audit, { keys: [audit.publicKey] })
  return { lines: audit.lines.length, verdict }
}

test('a low-risk write runs; the audit log has it and verifies', async () => {
  const { did, note } = tools()
  const agent = solo('notes', {
    script: [calls('note', { text: 'x' }), says('Noted.')],
    tools: [note],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('note x')
  expect(outcome).toBe('completed')
  expect(did).toEqual(['note {"text":"x"}'])
  const { lines, verdict } = await verified(it, id)
  expect(lines).toBeGreaterThan(0)
  expect(verdict).toMatchObject({ ok: true })
  const audit = await it.threads.audit(id)
  const forged = { ...audit, lines: audit.lines.map((line) => line.replace('note', 'nope')) }
  expect(await verifyAudit(forged, { keys: [audit.publicKey] })).toMatchObject({ ok: false })
})

test('SA-26 the audit log of a session that its tool failed says so, as of any that failed', async () => {
  const { note } = tools()
  const agent = solo('notes', {
    script: [calls('note', { text: 'x' }), calls('end', { why: 'no paper' })],
    tools: [note, tool('end')],
    sessionFail: { name: 'end', messageProperty: 'why' },
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('note x')
  expect(outcome).toBe('failed')
  const { verdict } = await verified(it, id)
  expect(verdict).toMatchObject({ ok: true })
  expect((await it.threads.audit(id)).lines.join('\n')).toContain('session_fail')
})

describe('a high-risk write', () => {
  const payer = () => {
    const { did, pay, refund, note } = tools()
    const agent = solo('pays', {
      script: [
        [calls('note', { n: 1 }), calls('pay', { amount: 9 }), calls('note', { n: 2 })],
        says('Well.'),
      ],
      tools: [pay, note, refund],
    })
    return { did, agent }
  }

  test('parks the thread as data; another runtime sees it, and once approved it runs once', async () => {
    const { did, agent } = payer()
    const it = await simulate({ agents: [agent] })
    const { id, outcome, waiting } = await it.ask('pay 9')
    expect(outcome).toBe('waiting')
    expect(waiting).toMatchObject([
      {
        kind: 'approval',
        toolName: 'pay',
        arguments: { amount: 9 },
        risk: 'write_high_risk',
        path: ['pays'],
      },
    ])
    await it.idle()
    expect(did).not.toContain('pay {"amount":9}')
    expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'waiting', waiting: 1 })

    const again = await it.restart()
    await again.idle()
    const [item] = await again.runtime.inbox.list()
    expect(item).toMatchObject({
      threadId: id,
      toolName: 'pay',
      interruptId: waiting[0]!.interruptId,
    })
    await again.runtime.inbox.approve({ ...item!, by: 'ann' })
    await expect(again.runtime.inbox.approve({ ...item!, by: 'bob' })).rejects.toMatchObject({
      code: expect.stringMatching(/ALREADY_ANSWERED|INTERRUPT_NOT_FOUND/),
    })
    await again.idle()
    expect((await again.threads.settled(id)).text).toBe('Well.')
    expect(did.filter((line) => line.startsWith('pay'))).toEqual(['pay {"amount":9}'])
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe(
      'tool_result: note = "note done", pay = "pay done", note = "note done"',
    )
    expect((await verified(again, id)).verdict).toMatchObject({ ok: true })
    const third = await again.restart()
    await third.idle()
    expect(did.filter((line) => line.startsWith('pay'))).toHaveLength(1)
    expect(await third.runtime.inbox.list()).toEqual([])
  })

  test('denied: the model learns why, and nothing ran', async () => {
    const { did, agent } = payer()
    const it = await simulate({ agents: [agent] })
    const { id, waiting } = await it.ask('pay 9')
    await it.runtime.inbox.deny({ ...waiting[0]!, by: 'ann', reason: 'too much' })
    await it.idle()
    expect((await it.threads.settled(id)).outcome).toBe('completed')
    expect(did.some((line) => line.startsWith('pay'))).toBe(false)
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/pay ! .*too much/)
    expect((await verified(it, id)).verdict).toMatchObject({ ok: true })
  })

  test('no one decides in time: it did not run', async () => {
    const { did, agent } = payer()
    const it = await simulate({ agents: [agent], limits: { interruptTtlMs: 60_000 } })
    const { id } = await it.ask('pay 9')
    await it.idle()
    await it.advance(60_000)
    expect((await it.threads.settled(id)).outcome).toBe('completed')
    expect(did.some((line) => line.startsWith('pay'))).toBe(false)
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/pay ! /)
  })

  test('stopped while it waits: the call is over, and cannot be approved any more', async () => {
    const { did, agent } = payer()
    const it = await simulate({ agents: [agent] })
    const { id, waiting } = await it.ask('pay 9')
    await it.threads.stop(id)
    await it.idle()
    await expect(it.runtime.inbox.approve({ ...waiting[0]!, by: 'ann' })).rejects.toMatchObject({
      code: 'INTERRUPT_NOT_FOUND',
    })
    await it.run(id, 'leave it')
    expect(did.some((line) => line.startsWith('pay'))).toBe(false)
    expect((await verified(it, id)).verdict).toMatchObject({ ok: true })
  })
})

describe('an agent with a task class', () => {
  const reports = (script: Parameters<typeof solo>[1]['script']): AgentDefinition =>
    solo(
      'reports',
      { script, tools: [tool('read', () => 'facts')] },
      {
        taskClass: {
          name: 'report',
          needs: [{ type: 'tool_result', source: 'read' }],
          verifiers: [
            {
              id: 'short',
              timeoutMs: 500,
              check: (_evidence, { candidate }) => [
                { check_id: 'length', result: String(candidate).length < 20 ? 'pass' : 'fail' },
              ],
            },
          ],
          repair: { max: 1 },
        },
      },
    )

  test('delivers what has its evidence', async () => {
    const agent = reports([calls('read'), says('All is well.')])
    const it = await simulate({ agents: [agent] })
    const { id, outcome, text } = await it.ask('report')
    expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'All is well.' })
    expect((await verified(it, id)).verdict).toMatchObject({ ok: true })
  })

  test('a claim without evidence is sent back to be fixed', async () => {
    const agent = reports([says('All is well.'), calls('read'), says('Still well.')])
    const it = await simulate({ agents: [agent] })
    const { id, outcome, text } = await it.ask('report')
    expect({ outcome, text }).toEqual({ outcome: 'completed', text: 'Still well.' })
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/^user: .*EVIDENCE_MISSING/)
    expect((await verified(it, id)).verdict).toMatchObject({ ok: true })
  })

  test('what cannot be fixed fails safe, and the next session begins anew', async () => {
    const agent = reports([
      says('All is well.'),
      says('Believe me.'),
      calls('read'),
      says('Really well.'),
    ])
    const it = await simulate({ agents: [agent] })
    const { id, outcome, reason, text } = await it.ask('report')
    expect({ outcome, reason }).toEqual({ outcome: 'failed', reason: 'fail_safe' })
    expect(text).toContain('EVIDENCE_MISSING')
    expect((await it.run(id, 'properly')).text).toBe('Really well.')
    expect((await verified(it, id)).verdict).toMatchObject({ ok: true })
  })
})
