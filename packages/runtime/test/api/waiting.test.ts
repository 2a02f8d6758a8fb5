import { beforeEach, describe, expect, test } from 'vitest'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { definitions } from './definitions.ts'
import { waitingSession } from './events.ts'
import { coded, createHarness, START, type Harness } from './harness.ts'

const at = new Date(START).toISOString()
let harness: Harness
let id: string

beforeEach(async () => {
  harness = await createHarness({ definitions })
  id = (await harness.threads.create({ agent: 'support', owner: 'ann' })).id
})

async function wait(
  threadId: string,
  interruptId?: string,
  kind?: 'approval' | 'input',
): Promise<void> {
  const append = waitingSession(interruptId, kind)
  await harness.environment.commit({
    point: 'test',
    threads: [{ id: threadId, append, head: { waiting: 1, lifecycle: 'waiting' } }],
  })
}

const log = async (threadId: string): Promise<RuntimeEvent[]> =>
  (await harness.threads.events(threadId)).map(({ event }) => event)

describe('inbox', () => {
  test('lists what waits in all threads with its path, by tenant and owner', async () => {
    await wait(id)
    const childId = `${id}-child` // questions of the same time are sorted by these ids
    const create = {
      tenant: 'default',
      owner: 'ann',
      agent: 'worker',
      parentId: id,
      rootId: id,
      title: null,
      tags: [],
      clientId: null,
      createdAt: START + 1,
    }
    const created: RuntimeEvent = {
      type: 'thread_created',
      at,
      threadId: childId,
      agent: 'worker',
      version: 1,
      depth: 1,
    }
    await harness.store.commit({
      point: 'test',
      threads: [{ id: childId, create, append: [created] }],
    })
    await wait(childId, 'i2')
    const other = (await harness.threads.create({ agent: 'support', tenant: 'other' })).id
    await wait(other, 'i3', 'input')
    const items = await harness.inbox.list({ tenant: 'default' })
    expect(items).toMatchObject([
      {
        threadId: id,
        rootId: id,
        interruptId: 'i1',
        toolName: 'pay',
        arguments: { amount: 5 },
        kind: 'approval',
        path: ['support'],
        risk: 'write_high_risk',
        request: { digest: 'sha256:1' },
      },
      { threadId: childId, rootId: id, interruptId: 'i2', path: ['support', 'worker'] },
    ])
    expect(await harness.inbox.list()).toHaveLength(3)
    expect(await harness.inbox.list({ owner: 'nobody' })).toEqual([])
    expect(await harness.inbox.list({ rootId: other })).toMatchObject([
      { kind: 'input', question: { id: 'i3' } },
    ])
  })

  test('the first decision counts: of two approvals one is refused', async () => {
    await wait(id)
    const decision = { threadId: id, interruptId: 'i1' }
    const results = await Promise.allSettled([
      harness.inbox.approve({ ...decision, by: 'bob' }),
      harness.inbox.deny({ ...decision, by: 'eve', reason: 'no' }),
      harness.inbox.approve({ ...decision, by: 'joe' }),
    ])
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toEqual(coded('ALREADY_ANSWERED'))
    const answers = (await log(id)).filter(({ type }) => type === 'interrupt_answered')
    expect(answers).toHaveLength(1)
    expect(await harness.threads.get(id)).toMatchObject({ waiting: 0 })
    expect(await harness.inbox.list()).toEqual([])
    await harness.dispatcher.idle()
    expect(harness.drained).toContain(id)
  })

  test('an approval is signed for the person, unless tokens come with it', async () => {
    await wait(id)
    await harness.inbox.approve({ threadId: id, interruptId: 'i1', by: 'bob', reason: 'fine' })
    expect(harness.signed).toEqual([{ id: 'i1', by: 'bob' }])
    expect((await log(id)).at(-1)).toMatchObject({
      answeredBy: 'bob',
      answer: { type: 'approve', token: ['token of bob'], reason: 'fine' },
    })
    const other = (await harness.threads.create({ agent: 'support' })).id
    await wait(other)
    await harness.inbox.approve({
      threadId: other,
      interruptId: 'i1',
      by: 'bob',
      tokens: ['elsewhere'],
    })
    expect(harness.signed).toHaveLength(1)
    expect((await log(other)).at(-1)).toMatchObject({ answer: { token: ['elsewhere'] } })
  })

  test('what two people have to approve waits for the second, and no one counts twice', async () => {
    const append = waitingSession().map((event) =>
      event.type === 'interrupt_opened'
        ? {
            ...event,
            interrupt: {
              ...event.interrupt,
              request: { ...(event.interrupt.request as object), quorum: 2 },
            },
          }
        : event,
    )
    await harness.environment.commit({
      point: 'test',
      threads: [{ id, append, head: { waiting: 1, lifecycle: 'waiting' } }],
    })
    const decision = { threadId: id, interruptId: 'i1' }
    const twice = await Promise.allSettled([
      harness.inbox.approve({ ...decision, by: 'bob' }),
      harness.inbox.approve({ ...decision, by: 'bob' }),
    ])
    expect(twice.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await harness.inbox.list()).toHaveLength(1)
    expect(JSON.stringify(await log(id))).not.toContain('token of bob')
    await harness.inbox.approve({ ...decision, by: 'eve' })
    expect((await log(id)).at(-1)).toMatchObject({
      type: 'interrupt_answered',
      answer: { type: 'approve', token: ['token of bob', 'token of eve'] },
    })
    expect(await harness.inbox.list()).toEqual([])
  })

  test('what does not wait, or not for this, is refused', async () => {
    await wait(id)
    const { inbox } = harness
    const by = 'bob'
    await expect(inbox.approve({ threadId: id, interruptId: 'none', by })).rejects.toEqual(
      coded('INTERRUPT_NOT_FOUND'),
    )
    await expect(inbox.approve({ threadId: id, interruptId: 'i1', by: 'support' })).rejects.toEqual(
      coded('ANSWER_INVALID'),
    )
    await expect(
      inbox.answer({ threadId: id, interruptId: 'i1' }, { type: 'result', value: 1 }),
    ).rejects.toEqual(coded('ANSWER_INVALID'))
    await expect(
      inbox.deny({ threadId: 'none', interruptId: 'i1', by, reason: '' }),
    ).rejects.toEqual(coded('THREAD_NOT_FOUND'))
    await harness.threads.terminate(id)
    await expect(inbox.deny({ threadId: id, interruptId: 'i1', by, reason: '' })).rejects.toEqual(
      coded('THREAD_TERMINATED'),
    )
  })

  test('a client answers its tool, once', async () => {
    await wait(id, 'i1', 'input')
    const item = { threadId: id, interruptId: 'i1', by: 'client' }
    const results = await Promise.allSettled([
      harness.inbox.answer(item, { type: 'result', value: { ok: true } }),
      harness.inbox.answer(item, { type: 'error', message: 'no' }),
    ])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(harness.inbox.answer(item, { type: 'result', value: 1n })).rejects.toEqual(
      coded('ANSWER_INVALID'),
    )
  })
})

describe('variables of a deferred child', () => {
  const requested: RuntimeEvent = {
    type: 'variables_requested',
    at,
    requestId: 'r1',
    required: ['API_KEY', 'REGION'],
    missing: ['API_KEY', 'REGION'],
    expiresAt: new Date(START + 1000).toISOString(),
    relation: 'worker',
    toolName: 'worker',
    arguments: {},
  }
  const values = { API_KEY: 'hunter2', REGION: 'eu' }

  beforeEach(async () => {
    let booted = 0
    harness = await createHarness({
      definitions,
      drain: async (threadId, { folds, append }) => {
        const { state } = (await folds.load(threadId))!
        for (const [requestId, { provided, reference, error }] of state.variables) {
          if (!provided || reference !== undefined || error !== undefined) continue
          const outcome =
            provided.by === 'fail' ? { error: 'no' } : { reference: `child${++booted}` }
          await append(threadId, { type: 'variables_settled', at, requestId, ...outcome })
        }
      },
    })
    id = (await harness.threads.create({ agent: 'support' })).id
    await harness.append(id, requested)
  })

  test('are asked for by name and given once: of two answers at once one boots the child', async () => {
    const { variables } = harness.threads
    expect(await variables.get(id, 'r1')).toMatchObject({
      required: ['API_KEY', 'REGION'],
      status: 'open',
    })
    const results = await Promise.allSettled([
      variables.provide(id, 'r1', values),
      variables.provide(id, 'r1', values),
    ])
    expect(results.filter(({ status }) => status === 'fulfilled')).toEqual([
      { status: 'fulfilled', value: { reference: 'child1' } },
    ])
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'ALREADY_ANSWERED' },
    })
    const events = await log(id)
    expect(events.filter(({ type }) => type === 'variables_provided')).toHaveLength(1)
    expect(JSON.stringify(events)).not.toContain('hunter2')
    const provided = events.find(({ type }) => type === 'variables_provided') as Extract<
      RuntimeEvent,
      { type: 'variables_provided' }
    >
    expect(provided.values['REGION']).toEqual({ valueType: 'text', value: 'eu' })
    expect(harness.environment.vault.open(provided.values['API_KEY']!.value, `${id}/API_KEY`)).toBe(
      'hunter2',
    )
    expect(await variables.get(id, 'r1')).toMatchObject({ status: 'provided' })
    expect(harness.live.readers).toBe(0)
  })

  test('must be whole, known and in time', async () => {
    const { variables } = harness.threads
    await expect(variables.provide(id, 'none', values)).rejects.toEqual(coded('REQUEST_NOT_FOUND'))
    await expect(variables.provide(id, 'r1', { REGION: 'eu' })).rejects.toThrow('API_KEY')
    await expect(variables.provide(id, 'r1', { REGION: 'eu' })).rejects.toEqual(
      coded('VARIABLES_MISSING'),
    )
    await expect(variables.provide(id, 'r1', { ...values, OTHER: '1' })).rejects.toEqual(
      coded('ENV_INVALID'),
    )
    harness.clock.advance(1000)
    expect(await variables.get(id, 'r1')).toMatchObject({ status: 'expired' })
    await expect(variables.provide(id, 'r1', values)).rejects.toEqual(coded('REQUEST_EXPIRED'))
    expect((await log(id)).filter(({ type }) => type === 'variables_provided')).toEqual([])
  })

  test('a child that could not be created is told', async () => {
    await expect(
      harness.threads.variables.provide(id, 'r1', values, { by: 'fail' }),
    ).rejects.toThrow('was not created: no')
  })
})

describe('waiting for a session', () => {
  const session = (outcome: 'completed' | 'failed', message: string): RuntimeEvent[] => [
    { type: 'session_start', at, sessionId: 's', agent: 'support' },
    { type: 'session_end', at, sessionId: 's', outcome, reason: 'response', message },
  ]

  /** Takes the queue one message per drain, and answers each with a session of its own. */
  const answering: Parameters<typeof createHarness>[0]['drain'] = async (
    threadId,
    { folds, append, dispatcher },
  ) => {
    const queued = (await folds.load(threadId))?.state.queue[0]
    if (!queued) return
    const { queueId, message } = queued
    const text =
      message.type === 'user' && message.content[0]?.type === 'text' ? message.content[0].text : ''
    const [start, end] = session('completed', `re: ${text}`)
    await append(threadId, start!, {
      type: 'message_added',
      at,
      turnId: queueId,
      side: 'b',
      queueId,
      message,
    })
    await append(threadId, end!)
    dispatcher.wake(threadId)
  }

  test('run answers with the session that took its own message', async () => {
    harness = await createHarness({ definitions, drain: answering })
    id = (await harness.threads.create({ agent: 'support' })).id
    const results = await Promise.all(['a', 'b', 'c'].map((text) => harness.threads.run(id, text)))
    expect(results.map(({ outcome, text }) => [outcome, text])).toEqual([
      ['completed', 're: a'],
      ['completed', 're: b'],
      ['completed', 're: c'],
    ])
    expect(await harness.threads.run(id, 'd')).toMatchObject({
      text: 're: d',
      reason: 'response',
      waiting: [],
      thread: { id },
    })
    expect(await harness.threads.settled(id)).toMatchObject({ text: 're: d' })
    expect(harness.live.readers).toBe(0)
  })

  test('needing a person is a result', async () => {
    harness = await createHarness({
      definitions,
      drain: async (threadId, { folds }) => {
        if ((await folds.load(threadId))?.state.session) return
        await wait(threadId)
      },
    })
    id = (await harness.threads.create({ agent: 'support' })).id
    expect(await harness.threads.run(id, 'pay')).toMatchObject({
      outcome: 'waiting',
      text: 'I will pay.',
      waiting: [{ interruptId: 'i1', toolName: 'pay' }],
    })
  })

  test('an abort ends the waiting at once, and not the session', async () => {
    const abort = new AbortController()
    await harness.append(id, ...waitingSession())
    await harness.environment.commit({
      point: 'test',
      threads: [{ id, head: { lifecycle: 'running' } }],
    })
    const running = harness.threads.settled(id, { signal: abort.signal })
    const before = (await log(id)).length
    abort.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
    expect((await log(id)).length).toBe(before)
    expect(harness.live.readers).toBe(0)
  })

  test('a message that was taken back is not waited for', async () => {
    const running = harness.threads.run(id, { text: 'a', messageId: 'm' })
    await harness.threads.send(id, { text: 'a', messageId: 'm' })
    expect(await harness.threads.unsend(id, 'm')).toBe(true)
    expect(await running).toMatchObject({ outcome: 'stopped', reason: 'unsent' })
  })

  test('a thread that is terminated meanwhile, and one that is not there', async () => {
    const running = harness.threads.run(id, 'a')
    await harness.threads.terminate(id)
    expect(await running).toMatchObject({ outcome: 'terminated' })
    await expect(harness.threads.settled('none')).rejects.toEqual(coded('THREAD_NOT_FOUND'))
  })
})
