import { beforeEach, describe, expect, test } from 'vitest'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { createApiContext } from '../../src/api/api-context.ts'
import { withState } from '../../src/api/with-state.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { defineHook } from '../../src/definitions/define.ts'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import type { ThreadState } from '../../src/contract/thread-state.ts'
import { next } from '../../src/loop/next.ts'
import { definitions } from './definitions.ts'
import { childCreated, exchange, waitingSession } from './events.ts'
import { coded, createHarness, deferred, START, testLimits, type Harness } from './harness.ts'

const at = new Date(START).toISOString()
let harness: Harness

beforeEach(async () => {
  harness = await createHarness({ definitions })
})

const newThread = async (): Promise<string> =>
  (await harness.threads.create({ agent: 'support', owner: 'ann' })).id

const log = async (id: string): Promise<RuntimeEvent[]> =>
  (await harness.threads.events(id)).map(({ event }) => event)

const types = async (id: string): Promise<string[]> => (await log(id)).map(({ type }) => type)

/** A child thread in the store, known to its parent. */
async function newChild(
  parentId: string,
  id: string,
  events: RuntimeEvent[] = [],
): Promise<string> {
  const parent = await harness.threads.get(parentId)
  const link = {
    threadId: parentId,
    relation: 'worker',
    isBlocking: false,
    isResumable: true,
    communication: 'implicit',
    receives: 'a',
  } as const
  const create = {
    tenant: 'default',
    owner: 'ann',
    agent: 'worker',
    parentId,
    rootId: parent.rootId,
    title: null,
    tags: [],
    clientId: null,
    createdAt: START,
  }
  const created: RuntimeEvent = {
    type: 'thread_created',
    at,
    threadId: id,
    agent: 'worker',
    version: 1,
    depth: 1,
    parent: link,
    parentThreadId: parentId,
  }
  await harness.store.commit({
    point: 'test',
    threads: [
      { id, create, append: [created, ...events] },
      { id: parentId, append: [childCreated(id)] },
    ],
  })
  return id
}

describe('create', () => {
  test('one commit holds everything a thread begins with', async () => {
    const head = await harness.threads.create({
      agent: 'support',
      owner: 'ann',
      title: 'Order 5',
      tags: ['vip'],
      env: { REGION: 'eu' },
      secrets: { TOKEN: 'hunter2' },
      values: { cart: [1] },
      metadata: { source: 'mail' },
      message: 'Hello',
    })
    expect(head).toMatchObject({
      tenant: 'default',
      owner: 'ann',
      agent: 'support',
      rootId: head.id,
      seq: 6,
    })
    expect(harness.points).toEqual(['create_thread'])
    const events = await log(head.id)
    expect(events.map(({ type }) => type)).toEqual([
      'thread_created',
      'agent_registered',
      'env_set',
      'env_set',
      'value_set',
      'message_queued',
    ])
    expect(events[1]).toMatchObject({ agent: { agent_id: 'support/a' } })
    expect(JSON.stringify(events)).not.toContain('hunter2')
    const secret = events[3] as Extract<RuntimeEvent, { type: 'env_set' }>
    expect(harness.environment.vault.open(secret.value!, `${head.id}/TOKEN`)).toBe('hunter2')
    expect(events[5]).toMatchObject({
      role: 'user',
      resumes: true,
      message: { type: 'user', content: [{ type: 'text', text: 'Hello' }] },
    })
    await harness.dispatcher.idle()
    expect(harness.drained).toEqual([head.id])
  })

  test('a thread with nothing to do is not woken; one whose agent begins by itself is', async () => {
    await harness.threads.create({ agent: 'support' })
    const { id } = await harness.threads.create({ agent: 'greeter' })
    await harness.dispatcher.idle()
    expect(harness.drained).toEqual([id])
  })

  test('refuses unknown agents and inputs that cannot be kept', async () => {
    const create = harness.threads.create
    await expect(create({ agent: 'nobody' })).rejects.toEqual(coded('AGENT_NOT_FOUND'))
    await expect(create({ agent: 'support', env: { 'a b': '1' } })).rejects.toEqual(
      coded('ENV_INVALID'),
    )
    await expect(create({ agent: 'support', values: { '': 1 } })).rejects.toEqual(
      coded('VALUE_INVALID'),
    )
    await expect(create({ agent: 'support', title: 'x'.repeat(1000) })).rejects.toEqual(
      coded('INPUT_INVALID'),
    )
    await expect(create({ agent: 'support', message: 'x'.repeat(3000) })).rejects.toEqual(
      coded('INPUT_INVALID'),
    )
    await expect(
      create({ agent: 'support', message: { text: 'a', attachments: ['/a'] } }),
    ).rejects.toEqual(coded('FILE_NOT_FOUND'))
    expect(await harness.threads.list()).toEqual([])
  })

  test('a client id makes one thread of two requests, and no thread of two agents; tenants and owners have their own', async () => {
    const wanted = { agent: 'support', clientId: 'c', owner: 'ann', message: 'Hello' }
    const [first, second] = await Promise.all([
      harness.threads.create(wanted),
      harness.threads.create(wanted),
    ])
    expect(second.id).toBe(first.id)
    expect((await types(first.id)).filter((type) => type === 'message_queued')).toHaveLength(1)
    await expect(harness.threads.create({ ...wanted, agent: 'greeter' })).rejects.toEqual(
      coded('CLIENT_ID_TAKEN'),
    )
    const ofBob = await harness.threads.create({ ...wanted, owner: 'bob' })
    expect(ofBob.id).not.toBe(first.id)
    expect(await harness.threads.byClientId('default', 'c', 'bob')).toMatchObject({ id: ofBob.id })
    const other = await harness.threads.create({ ...wanted, tenant: 'other' })
    expect(other.id).not.toBe(first.id)
    expect(await harness.threads.byClientId('other', 'c')).toMatchObject({ id: other.id })
  })
})

describe('send', () => {
  test('many senders at once: every message is queued once, in one order', async () => {
    const id = await newThread()
    const sent = await Promise.all(
      Array.from({ length: 20 }, (_, index) => harness.threads.send(id, `${index}`)),
    )
    expect(new Set(sent.map(({ seq }) => seq)).size).toBe(20)
    for (const { seq, queueId } of sent)
      expect((await log(id))[seq - 1]).toMatchObject({ type: 'message_queued', queueId })
  })

  test('sending twice with one id queues once, also at the same time and after it was taken', async () => {
    const id = await newThread()
    const message = { text: 'Hello', messageId: 'm' }
    const [one, two] = await Promise.all([
      harness.threads.send(id, message),
      harness.threads.send(id, message),
    ])
    expect(two).toEqual(one)
    expect((await types(id)).filter((type) => type === 'message_queued')).toHaveLength(1)
    await harness.append(id, {
      type: 'message_added',
      at,
      turnId: 'm',
      side: 'b',
      queueId: 'm',
      message: { id: 'm', type: 'user', timestamp: at, content: [] },
    })
    expect(await harness.threads.send(id, message)).toEqual(one)
  })

  test('refuses what cannot be sent, and then nothing is queued', async () => {
    const id = await newThread()
    const { send } = harness.threads
    await expect(send(id, '')).rejects.toEqual(coded('INPUT_INVALID'))
    await expect(send(id, 'x'.repeat(3000))).rejects.toEqual(coded('INPUT_INVALID'))
    await expect(send(id, { text: 'a', role: 'system' as 'user' })).rejects.toEqual(
      coded('INPUT_INVALID'),
    )
    await expect(send(id, { text: 'a', attachments: ['/none'] })).rejects.toEqual(
      coded('FILE_NOT_FOUND'),
    )
    await expect(send(id, { text: 'a', attachments: ['../x'] })).rejects.toEqual(
      coded('FILE_PATH_INVALID'),
    )
    await expect(send('nobody', 'a')).rejects.toEqual(coded('THREAD_NOT_FOUND'))
    await harness.append(id, ...exchange('one'))
    await expect(send(id, { text: 'a', messageId: 'one-a' })).rejects.toEqual(
      coded('INPUT_INVALID'),
    )
    expect(await types(id)).not.toContain('message_queued')
  })

  test('a message that waits can be taken back, once', async () => {
    const id = await newThread()
    const { queueId } = await harness.threads.send(id, 'a')
    expect(await harness.threads.unsend(id, queueId)).toBe(true)
    expect(await harness.threads.unsend(id, queueId)).toBe(false)
  })
})

describe('control', () => {
  test('stop writes and interrupts only what runs; a second one says nothing new', async () => {
    const id = await newThread()
    await harness.threads.stop(id)
    expect(await types(id)).not.toContain('stop_requested')
    await harness.append(id, ...waitingSession())
    await Promise.all([harness.threads.stop(id, { by: 'ann' }), harness.threads.stop(id)])
    expect((await types(id)).filter((type) => type === 'stop_requested')).toHaveLength(1)
  })

  test('stop aborts the running drain, stop after the step does not', async () => {
    const reasons: unknown[] = []
    let isRunning = deferred()
    let goOn = deferred()
    harness = await createHarness({
      definitions,
      drain: async (_, __, signal) => {
        isRunning.resolve()
        signal.addEventListener('abort', () => goOn.resolve(), { once: true })
        await goOn.promise
        reasons.push(signal.reason)
      },
    })
    const id = await newThread()
    await harness.append(id, ...waitingSession())
    harness.dispatcher.wake(id)
    await isRunning.promise
    await harness.threads.stop(id, { afterStep: true })
    goOn.resolve()
    await harness.dispatcher.settled(id)
    expect(reasons[0]).toBeUndefined()
    isRunning = deferred()
    goOn = deferred()
    harness.dispatcher.wake(id)
    await isRunning.promise
    await harness.threads.stop(id)
    await harness.dispatcher.settled(id)
    expect(reasons).toContain('stop')
  })

  test('resume is written for a thread that is at rest or was told to stop, and once', async () => {
    const id = await newThread()
    await harness.append(id, ...waitingSession())
    await harness.threads.resume(id)
    expect(await types(id)).not.toContain('resume_requested')
    await harness.append(id, {
      type: 'session_end',
      at,
      sessionId: 's1',
      outcome: 'stopped',
      reason: 'stopped',
    })
    await Promise.all([harness.threads.resume(id), harness.threads.resume(id)])
    expect((await types(id)).filter((type) => type === 'resume_requested')).toHaveLength(1)
  })

  test('terminate is done once, also if another call is faster while this one reads the log', async () => {
    const id = await newThread()
    const { store } = harness
    const events = store.events.bind(store)
    let reads = 0
    store.events = async (...query) => {
      if (reads++ === 0) await harness.threads.terminate(id)
      return events(...query)
    }
    await harness.threads.terminate(id)
    expect((await types(id)).filter((type) => type === 'thread_terminated')).toHaveLength(1)
  })

  test('terminate tells the parent in the same commit, and is done once', async () => {
    const parent = await newThread()
    const child = await newChild(parent, 'child')
    await Promise.all([harness.threads.terminate(child), harness.threads.terminate(child)])
    expect(await harness.threads.get(child)).toMatchObject({ lifecycle: 'terminated', waiting: 0 })
    expect((await types(child)).filter((type) => type === 'thread_terminated')).toHaveLength(1)
    expect((await log(parent)).filter(({ type }) => type === 'subagent_ended')).toMatchObject([
      { reference: child, outcome: 'terminated' },
    ])
    expect(await harness.threads.children(parent)).toMatchObject([
      { reference: child, status: 'terminated' },
    ])
    expect(harness.points.filter((point) => point === 'terminate_thread')).toHaveLength(1)
  })

  test('terminate ends without an error when the thread is removed meanwhile', async () => {
    const own: Harness = await createHarness({
      definitions,
      // The last work on the thread ends after another caller has removed the thread.
      drain: (id) => own.store.remove(id),
    })
    const { id } = await own.threads.create({ agent: 'support' })
    await own.threads.terminate(id)
    expect(own.drained).toContain(id)
    expect(await own.store.head(id)).toBeUndefined()
  })

  test('a terminated thread takes nothing any more', async () => {
    const id = await newThread()
    await harness.threads.terminate(id)
    const before = await types(id)
    const tries = [
      harness.threads.send(id, 'a'),
      harness.threads.resume(id),
      harness.threads.update(id, { title: 'x' }),
      harness.threads.values.set(id, 'a', 1),
      harness.threads.env.set(id, 'A', '1'),
      harness.threads.files.write(id, '/a', new Uint8Array(1)),
      harness.threads.effects.schedule(id, 'clean', null, 5),
    ]
    for (const result of await Promise.allSettled(tries))
      expect(result).toMatchObject({ reason: { code: 'THREAD_TERMINATED' } })
    await harness.threads.stop(id)
    expect(await types(id)).toEqual(before)
  })

  test('a call of the parent that waits for a message the child never took is answered when the child is closed', async () => {
    const parent = await newThread()
    await harness.append(parent, ...waitingSession('wait', 'input'))
    const message = { id: 'q', type: 'user', timestamp: at, content: [] } as const
    const child = await newChild(parent, 'child', [
      {
        type: 'message_queued',
        at,
        queueId: 'q',
        role: 'user',
        message,
        parentInterruptId: 'wait',
      },
    ])
    await harness.threads.terminate(child)
    expect((await log(parent)).at(-1)).toMatchObject({ type: 'subagent_ended', reference: child })
    // The child is run once more, whether its agent is defined or not; conformance tests show the answer.
    expect(harness.drained).toContain(child)
    const { state } = (await harness.folds.load(child))!
    const options = { agent: undefined, epoch: 2, now: Date.parse(at), limits: testLimits }
    expect(next(state, options)).toEqual({ type: 'close', outcome: 'terminated' })
  })
})

describe('erase and remove', () => {
  test('erasing leaves a skeleton without anything that was said', async () => {
    const id = (
      await harness.threads.create({
        agent: 'support',
        title: 'canary title',
        message: 'canary message',
        env: { A: 'canary env' },
        values: { k: 'canary value' },
        metadata: { m: 'canary meta' },
      })
    ).id
    await harness.threads.files.write(id, '/canary.txt', Buffer.from('canary file'))
    await harness.append(
      id,
      ...JSON.parse(JSON.stringify(exchange('canary')).replaceAll('paid', 'canary result')),
    )
    const child = await newChild(id, 'child', [
      { type: 'value_set', at, key: 'k', value: 'canary child' },
    ])
    const { hash } = (await harness.threads.files.stat(id, '/canary.txt'))!
    await harness.threads.erase(id, { by: 'ann' })
    const left = JSON.stringify([await log(id), await log(child), await harness.threads.get(id)])
    expect(left.replaceAll(/canary-[a-z0-9]+/g, '')).not.toContain('canary')
    expect(await harness.store.blob(hash)).toBeUndefined()
    expect(await harness.threads.get(id)).toMatchObject({ lifecycle: 'erased' })
    expect((await log(id)).at(-1)).toMatchObject({ type: 'thread_erased', by: 'ann' })
    expect(await types(id)).toContain('tool_execution_end')
    // What is left of a result is null.
    const texts = (await harness.threads.messages(id)).map(({ message }) => message.text)
    expect(texts.filter((text) => text !== '' && text !== 'null')).toEqual([])
    await expect(harness.threads.send(id, 'a')).rejects.toEqual(coded('THREAD_TERMINATED'))
    await harness.threads.erase(id)
  })

  test('removing takes the tree, and its readers end', async () => {
    const id = await newThread()
    const child = await newChild(id, 'child')
    await newChild(child, 'grandchild')
    const given: string[] = []
    const reading = (async () => {
      for await (const { event } of harness.live.subscribe('grandchild')) given.push(event.type)
    })()
    await harness.threads.remove(id)
    await reading
    expect(given[0]).toBe('thread_created')
    expect(await harness.threads.list()).toEqual([])
    await expect(harness.threads.get(id)).rejects.toEqual(coded('THREAD_NOT_FOUND'))
    expect(harness.live.readers).toBe(0)
  })
})

describe('files, values, variables and effects', () => {
  test('files: the rules of tools hold from outside', async () => {
    const id = await newThread()
    const { files } = harness.threads
    const stat = await files.write(id, '/a//b.txt', Buffer.from('hello'))
    expect(stat).toMatchObject({ path: '/a/b.txt', mediaType: 'text/plain', sizeBytes: 5 })
    expect(await files.read(id, '/a/b.txt')).toEqual({
      stat,
      bytes: new Uint8Array(Buffer.from('hello')),
    })
    expect(await files.move(id, '/a/b.txt', '/c.txt')).toMatchObject({
      path: '/c.txt',
      hash: stat.hash,
    })
    expect((await files.list(id)).map(({ path }) => path)).toEqual(['/c.txt'])
    await expect(files.write(id, '/big', new Uint8Array(1001))).rejects.toEqual(
      coded('FILE_TOO_LARGE'),
    )
    await expect(files.write(id, '/../x', new Uint8Array(1))).rejects.toEqual(
      coded('FILE_PATH_INVALID'),
    )
    await expect(files.read(id, '/none')).rejects.toEqual(coded('FILE_NOT_FOUND'))
    expect(await files.remove(id, '/c.txt')).toBe(true)
    expect(await files.remove(id, '/c.txt')).toBe(false)
    expect(await files.stat(id, '/c.txt')).toBeUndefined()
  })

  test('values are set, listed and removed', async () => {
    const id = await newThread()
    const { values } = harness.threads
    await values.set(id, 'a/1', { x: [1] })
    await values.set(id, 'b', 2)
    expect(await values.get(id, 'a/1')).toEqual({ x: [1] })
    expect(await values.list(id, 'a/')).toEqual({ 'a/1': { x: [1] } })
    await values.set(id, 'b', null)
    await values.set(id, 'b', null)
    expect((await types(id)).filter((type) => type === 'value_set')).toHaveLength(3)
    await expect(values.set(id, 'c', Number.NaN)).rejects.toEqual(coded('VALUE_INVALID'))
  })

  test('a variable reaches live descendants in the same commit, down to those with one of their own', async () => {
    const id = await newThread()
    const child = await newChild(id, 'child')
    const scoped = await newChild(id, 'scoped', [
      { type: 'env_set', at, name: 'KEY', valueType: 'text', value: 'own', isScoped: true },
    ])
    const below = await newChild(scoped, 'below')
    const dead = await newChild(id, 'dead')
    await harness.threads.terminate(dead)
    const points = harness.points.length
    await harness.threads.env.set(id, 'KEY', 's3cret', { type: 'secret' })
    expect(harness.points.slice(points)).toEqual(['set_env'])
    const opened = async (threadId: string): Promise<string | undefined> => {
      const { state } = (await harness.folds.load(threadId))!
      const entry = state.env.get('KEY')
      return entry?.type === 'secret'
        ? harness.environment.vault.open(entry.value, `${threadId}/KEY`)
        : entry?.value
    }
    expect(await opened(id)).toBe('s3cret')
    expect(await opened(child)).toBe('s3cret')
    expect(await opened(scoped)).toBe('own')
    expect(await opened(below)).toBeUndefined()
    expect(await opened(dead)).toBeUndefined()
    expect(await harness.threads.env.list(id)).toEqual([{ name: 'KEY', type: 'secret' }])
  })

  test('a variable that is declared a secret is one, whatever the caller says', async () => {
    const id = await newThread()
    await harness.threads.env.set(id, 'TOKEN', 'hunter2')
    await harness.threads.env.set(id, 'PLAIN', 'x')
    expect(await harness.threads.env.list(id)).toEqual([
      { name: 'PLAIN', type: 'text', value: 'x' },
      { name: 'TOKEN', type: 'secret' },
    ])
    expect(JSON.stringify(await log(id))).not.toContain('hunter2')
  })

  test('effects are scheduled, run early and removed', async () => {
    const id = await newThread()
    const { effects } = harness.threads
    const effectId = await effects.schedule(id, 'clean', { a: 1 }, { delayMs: 5000, key: 'k' })
    expect(await harness.threads.get(id)).toMatchObject({
      wakeAt: new Date(START + 5000).toISOString(),
    })
    const second = await effects.schedule(id, 'clean', null, { cron: '0 0 * * *', key: 'k' })
    expect((await effects.list(id)).map(({ id: one }) => one)).toEqual([second])
    await expect(effects.runNow(id, effectId)).rejects.toEqual(coded('EFFECT_NOT_FOUND'))
    await effects.runNow(id, second)
    expect(await effects.list(id)).toMatchObject([{ id: second, at, cron: '0 0 * * *' }])
    expect(await effects.remove(id, second)).toBe(true)
    expect(await effects.remove(id, second)).toBe(false)
    await expect(effects.schedule(id, 'nothing', null, 1)).rejects.toEqual(
      coded('EFFECT_NOT_FOUND'),
    )
    await expect(effects.schedule(id, 'clean', null, -1)).rejects.toEqual(coded('EFFECT_INVALID'))
  })

  test('messages are changed by way of the hooks, and removed', async () => {
    const after: string[] = []
    const hooks = [
      defineHook({
        id: 'louder',
        hook: 'before_update_message',
        execute: (state, id, message) => {
          state.setValue('before', message.text)
          return new UserMessage(`${message.text}!`, { id })
        },
      }),
      defineHook({
        id: 'broken',
        hook: 'before_update_message',
        execute: () => {
          throw new Error('no')
        },
      }),
      defineHook({
        id: 'seen',
        hook: 'after_update_message',
        execute: (_, { message }) => void after.push(message.text),
      }),
    ]
    const [support] = definitions.agents
    const agents = [defineAgent({ ...support!, hooks })]
    harness = await createHarness({ definitions: { ...definitions, agents } })
    const id = await newThread()
    await harness.append(id, ...exchange('one'))
    await harness.threads.updateMessage(id, 'one-u', 'other')
    expect((await harness.threads.messages(id))[0]?.message.text).toBe('other!')
    expect(after).toEqual(['other!'])
    expect(await harness.threads.values.get(id, 'before')).toBe('other')
    expect((await log(id)).find(({ type }) => type === 'error_raised')).toMatchObject({
      code: 'HOOK_FAILED',
    })
    expect((await types(id)).filter((type) => type === 'message_updated')).toHaveLength(1)
    await harness.threads.deleteMessage(id, 'one-u')
    expect((await harness.threads.messages(id)).map(({ id: one }) => one)).toEqual([
      'one-a',
      'one-a.results',
      'one-z',
    ])
    await expect(harness.threads.deleteMessage(id, 'none')).rejects.toEqual(
      coded('MESSAGE_NOT_FOUND'),
    )
    const { messageId } = await harness.threads.send(id, 'waits')
    await harness.threads.deleteMessage(id, messageId)
    expect((await log(id)).at(-1)).toMatchObject({ type: 'message_unqueued' })
  })
})

test.each([
  ['a number', 42],
  ['a text', 'text'],
  ['another type of message', new AssistantMessage('x')],
])(
  '%s is no answer of a hook: it is passed over and named, as in the work on a thread',
  async (_, answer) => {
    const hook = defineHook({
      id: 'wrong',
      hook: 'before_update_message',
      execute: ((state: ThreadState) => {
        state.setValue('touched', true)
        return answer
      }) as never,
    })
    const [support] = definitions.agents
    const agents = [defineAgent({ ...support!, hooks: [hook] })]
    harness = await createHarness({ definitions: { ...definitions, agents } })
    const id = await newThread()
    await harness.append(id, ...exchange('one'))
    await harness.threads.updateMessage(id, 'one-u', 'other')
    expect((await harness.threads.messages(id))[0]?.message.text).toBe('other')
    const raised = (await log(id)).filter(({ type }) => type === 'error_raised')
    expect(raised).toMatchObject([{ code: 'HOOK_ANSWER' }])
    expect(raised[0]).toMatchObject({ message: expect.stringContaining('The hook "wrong"') })
    expect(harness.reported).toMatchObject([{ code: 'HOOK_ANSWER' }])
    expect(await harness.threads.values.get(id, 'touched')).toBeUndefined()
  },
)

test('code with the state of a thread reaches parent, children and the end of the thread, or nothing', async () => {
  const parent = await newThread()
  const id = await newChild(parent, 'child')
  const below = await newChild(id, 'below')
  const context = createApiContext(harness.environment)
  await harness.threads.files.write(id, '/a.txt', Buffer.from('a'))
  const failed = withState(context, id, (state) => {
    state.setValue('k', 1)
    throw new Error('no')
  })
  await expect(failed).rejects.toThrow('no')
  expect(await harness.threads.values.get(id, 'k')).toBeUndefined()
  const points = harness.points.length
  const answer = await withState(context, id, (state) => {
    state.setValue('k', 2)
    state.setEnv('REGION', 'eu')
    state.notifyParent('See this.', ['/a.txt'])
    state.terminate()
    return 'done'
  })
  expect(answer).toBe('done')
  expect(harness.points.slice(points)).toEqual(['with_state'])
  expect(await harness.threads.values.get(id, 'k')).toBe(2)
  expect(await harness.threads.env.list(below)).toEqual([
    { name: 'REGION', type: 'text', value: 'eu' },
  ])
  expect(await log(parent)).toContainEqual(
    expect.objectContaining({ type: 'message_queued', isSilent: true, subagentId: id }),
  )
  expect((await harness.threads.files.list(parent)).map(({ path }) => path)).toEqual([
    expect.stringMatching(/^\/attachments\/a-[0-9a-f]{8}\.txt$/),
  ])
  expect(await harness.threads.children(parent)).toMatchObject([{ status: 'terminated' }])
  expect(await harness.threads.get(id)).toMatchObject({ lifecycle: 'terminated' })
  await expect(withState(context, id, () => 1)).rejects.toEqual(coded('THREAD_TERMINATED'))
})

test('the title and tags of a thread can be changed', async () => {
  const id = await newThread()
  expect(await harness.threads.update(id, { title: 'New', tags: ['a'] })).toMatchObject({
    title: 'New',
    tags: ['a'],
  })
  expect((await harness.threads.folded(id)).title).toBe('New')
  await expect(harness.threads.update(id, { tags: [''] })).rejects.toEqual(coded('INPUT_INVALID'))
})

test('each event of a growing thread is folded once', async () => {
  const id = await newThread()
  let read = 0
  const { events } = harness.store
  harness.store.events = async (...args) => {
    const page = await events.apply(harness.store, args)
    read += page.length
    return page
  }
  for (let index = 0; index < 100; index++) {
    await harness.threads.values.set(id, 'k', index)
    expect(await harness.threads.values.get(id, 'k')).toBe(index)
  }
  expect(read).toBe((await harness.threads.get(id)).seq)
})
