import { expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { type AgentDefinition, defineEffect, defineHook } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
  )

test('SA-84 terminate aborts a tool that runs, and nothing comes after it', async () => {
  const started = latch<AbortSignal>()
  const slow = tool('slow', (state, _, signal) => {
    state.setValue('half', true)
    started.open(signal)
    return aborted(signal)
  })
  const agent = solo('busy', { script: [calls('slow'), says('never')], tools: [slow] })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const run = it.run(id, 'go')
  const signal = await started.reached
  await it.threads.terminate(id, { by: 'ann' })
  expect(signal.aborted).toBe(true)
  expect(await run).toMatchObject({ outcome: 'terminated' })
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(1)
  expect((await it.threads.get(id)).lifecycle).toBe('terminated')
  expect(await it.threads.values.list(id)).toEqual({})
  expect(await it.events(id, 'session_end')).toMatchObject([{ outcome: 'terminated' }])
})

test('SA-84 terminate aborts a model that speaks', async () => {
  const asked = latch<AbortSignal>()
  const agent = solo('slow', {
    script: async ({ signal }) => {
      asked.open(signal)
      return aborted(signal)
    },
  })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const run = it.run(id, 'go')
  const signal = await asked.reached
  await it.threads.terminate(id)
  expect(signal.aborted).toBe(true)
  expect(await run).toMatchObject({ outcome: 'terminated' })
})

test('SA-84 a tool that does not heed the signal does not hold the thread', async () => {
  const started = latch()
  const deaf = tool('deaf', () => {
    started.open()
    return new Promise(() => {})
  })
  const agent = solo('busy', { script: [calls('deaf')], tools: [deaf] })
  const it = await simulate({ agents: [agent] })
  const id = await it.create()
  const run = it.run(id, 'go')
  await started.reached
  await it.threads.terminate(id)
  expect(await run).toMatchObject({ outcome: 'terminated' })
  await it.idle()
})

test('SA-84 a tool can terminate its own thread', async () => {
  const quit = tool('quit', (state) => state.terminate())
  const agent = solo('tired', { script: [calls('quit'), says('never')], tools: [quit] })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('go')
  expect(outcome).toBe('terminated')
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(1)
  await expect(it.threads.send(id, 'more')).rejects.toMatchObject({ code: 'THREAD_TERMINATED' })
})

test('SA-85 a terminated thread refuses everything that would change it, and can be read', async () => {
  const ticks: number[] = []
  const tick = defineEffect({ name: 'tick', execute: () => void ticks.push(1) })
  const agent = solo('gone', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent], effects: [tick] })
  const { id } = await it.ask('hi')
  const bytes = new TextEncoder().encode('x')
  await it.threads.files.write(id, '/a.txt', bytes)
  const effectId = await it.threads.effects.schedule(id, 'tick', null, 1000)
  const [message] = await it.threads.messages(id)
  await it.threads.terminate(id)
  const { threads } = it
  const refused: Record<string, () => Promise<unknown>> = {
    send: () => threads.send(id, 'x'),
    'send, silent': () => threads.send(id, { text: 'x', isSilent: true, role: 'assistant' }),
    run: () => threads.run(id, 'x'),
    unsend: () => threads.unsend(id, 'x'),
    resume: () => threads.resume(id),
    update: () => threads.update(id, { title: 'x' }),
    updateMessage: () => threads.updateMessage(id, message!.id, 'x'),
    deleteMessage: () => threads.deleteMessage(id, message!.id),
    'files.write': () => threads.files.write(id, '/b.txt', bytes),
    'files.remove': () => threads.files.remove(id, '/a.txt'),
    'files.move': () => threads.files.move(id, '/a.txt', '/b.txt'),
    'values.set': () => threads.values.set(id, 'k', 1),
    'env.set': () => threads.env.set(id, 'K', 'v'),
    'effects.schedule': () => threads.effects.schedule(id, 'tick', null, 1),
    'effects.runNow': () => threads.effects.runNow(id, effectId),
    withState: () => it.runtime.withState(id, (state) => void ran.push(state.setValue('k', 1))),
  }
  const ran: unknown[] = []
  const before = await it.eventTypes(id)
  for (const [name, act] of Object.entries(refused))
    await expect(act(), name).rejects.toMatchObject({ code: 'THREAD_TERMINATED' })
  expect(await it.eventTypes(id)).toEqual(before)
  expect((await threads.get(id)).wakeAt).toBeNull()
  expect(ran).toEqual([])

  await it.advance(5_000)
  expect(ticks).toEqual([])
  expect(requestsOf(agent)).toHaveLength(1)
  expect(await threads.messages(id)).toHaveLength(2)
  expect((await threads.files.read(id, '/a.txt')).bytes).toEqual(bytes)
  expect(await threads.document(id)).toMatchObject({ thread_id: id })
})

test('SA-85 terminating twice is once, and what waits in the queue is never run', async () => {
  const agent = solo('gone', { script: () => says('Yes.') })
  const it = await simulate({ agents: [agent], starts: false })
  const id = await it.create({ message: 'hi' })
  await it.threads.terminate(id)
  await it.threads.terminate(id)
  await it.runtime.start()
  await it.idle()
  expect(requestsOf(agent)).toHaveLength(0)
  expect(await it.events(id, 'thread_terminated')).toHaveLength(1)
  const again = await it.restart()
  await again.idle()
  expect(requestsOf(agent)).toHaveLength(0)
})

const finish = tool('finish')

/** A child that ends its session with `finish`, unless its script does something else. */
function child(side: Partial<SideSetup> = {}, agent: Partial<AgentDefinition> = {}) {
  const { tools = [], ...rest } = side
  const a = {
    script: () => calls('finish', { text: 'done' }),
    sessionStop: { name: finish, messageProperty: 'text' },
    ...rest,
    tools: [finish, ...tools],
  }
  return pair('helper', { a, b: { script: () => says('Continue.') } }, agent)
}

const start = calls('subagent_create', { name: 'Ada', message: 'go' })

test.each([false, true])(
  'SA-86 a child that a hook terminates before its first turn leaves no parent waiting (immediate: %j)',
  async (immediate) => {
    const refuse = defineHook({
      id: 'refuse',
      hook: 'after_thread_created',
      execute: (state) => state.terminate(),
    })
    const helper = child({}, { hooks: [refuse] })
    const top = solo('boss', {
      script: immediate ? [says('Oh.')] : [start, says('Oh.')],
      tools: [{ name: helper, resumable: {}, immediate }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'hi' })
    await it.idle()
    expect((await it.events(id, 'session_end')).map(({ message }) => message)).toEqual(['Oh.'])
    expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
    expect(requestsOf(helper)).toEqual([])
    if (immediate) return
    const told = linesOf(requestsOf(top)[1]).find((line) => line.startsWith('tool_result'))
    expect(told).toMatch(/^tool_result: subagent_create ! .*terminated/s)
  },
)

test.each(['itself', 'an endpoint', 'the API'])(
  'SA-86 when %s terminates a child, every call that waits for it is answered, also for queued messages',
  async (who) => {
    const queued = latch()
    const working = latch()
    const end = tool('end', (state) => state.terminate())
    const helper = child({
      script: [
        calls('finish', { text: 'ready' }),
        async ({ signal }) => {
          working.open()
          await queued.reached
          return who === 'itself' ? calls('end') : aborted(signal)
        },
      ],
      tools: [end],
    })
    let reference = ''
    const top = solo('boss', {
      script: [
        start,
        says('Made.'),
        async () => [
          calls('subagent_message', { reference, message: 'one' }),
          calls('subagent_message', { reference, message: 'two' }),
        ],
        says('Oh.'),
      ],
      tools: [{ name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    reference = (await it.threads.children(id))[0]!.reference
    const commit = it.store.commit.bind(it.store)
    it.store.commit = async (change) => {
      // The second message comes while the child answers the first.
      const isSecond = JSON.stringify(change.threads).includes('"two"')
      if (isSecond && change.point === 'call_waits') await working.reached
      const result = await commit(change)
      if (isSecond && change.point === 'call_waits') queued.open()
      return result
    }
    await it.send(id, 'more')
    await queued.reached
    if (who === 'an endpoint') await it.runtime.withState(reference, (state) => state.terminate())
    if (who === 'the API') await it.threads.terminate(reference)
    await it.idle()
    expect((await it.events(id, 'session_end')).map(({ message }) => message)).toEqual([
      'Made.',
      'Oh.',
    ])
    const told = linesOf(requestsOf(top)[3]).find((line) => line.includes('subagent_message !'))
    expect(told).toMatch(/subagent_message ! .*terminated.*subagent_message ! .*terminated/s)
    expect(await it.threads.children(id)).toMatchObject([{ status: 'terminated' }])
  },
)

test('SA-84 an endpoint can terminate a child whose parent was terminated without it', async () => {
  const helper = child()
  const top = solo('boss', {
    script: [start, says('Made.')],
    tools: [{ name: helper, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const { reference } = (await it.threads.children(id))[0]!
  await it.threads.terminate(id, { detach: true })
  expect((await it.threads.get(reference)).lifecycle).toBe('idle')
  await it.runtime.withState(reference, (state) => state.terminate())
  expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
  await it.idle()
})

test.each(['the API', 'an endpoint', 'the end of its parent'])(
  'SA-84 once %s has terminated a thread, another process that works on it can record the end of a call, and make no child',
  async (how) => {
    const helper = child()
    const top = solo('boss', {
      script: [start, says('Made.')],
      tools: [{ name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const { reference } = (await it.threads.children(id))[0]!
    const owner = 'elsewhere'
    const claim = await it.store.claim(reference, { owner, leaseMs: 60_000 })
    if (!claim || 'heldBy' in claim) throw new Error('The child is at rest and can be claimed.')
    await it.store.release(owner) // its lease is over, but it works on
    const commit = it.store.commit.bind(it.store)
    const late: unknown[] = []
    it.store.commit = async (change) => {
      const result = await commit(change)
      const own = change.threads.find((one) => one.id === reference)
      const ended = { id: reference, fence: claim.epoch, append: [] }
      if (own?.append?.some(({ type }) => type === 'thread_terminated'))
        for (const mustBeLive of [undefined, true]) {
          const threads = [{ ...ended, mustBeLive }]
          late.push(await commit({ point: 'call_end', threads }).catch((error: unknown) => error))
        }
      return result
    }
    if (how === 'an endpoint') await it.runtime.withState(reference, (state) => state.terminate())
    else await it.threads.terminate(how === 'the API' ? reference : id)
    await it.idle()
    expect(late).toMatchObject([{ seqs: expect.any(Map) }, { code: 'THREAD_TERMINATED' }])
    expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
  },
)
