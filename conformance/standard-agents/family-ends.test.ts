// Whose end is whose: parents, children and grandchildren.
import { expect, test } from 'vitest'
import { calls, says, waits } from '@skein/ai/testing'
import { burn, child, finished, linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { childOf, simulate } from './support/simulate.ts'

test('SA-42 a disposable child ends with its failure as it ends with its result', async () => {
  for (const blocking of [true, false])
    for (const [step, outcome] of [
      [finished('done'), 'completed'],
      [calls('fail', { why: 'no paper' }), 'failed'],
    ] as const) {
      const helper = child('helper', { script: [step] })
      const boss = solo('boss', {
        script: () =>
          requestsOf(boss).length === 1 ? calls('helper', { message: 'go' }) : says('Ok.'),
        tools: [{ name: helper, blocking }],
      })
      const it = await simulate({ agents: [boss] })
      const { id } = await it.ask('go')
      await it.idle()
      const reference = await childOf(it, id)
      expect(await it.events(reference, 'thread_terminated')).toMatchObject([{ hasReported: true }])
      expect((await it.threads.get(reference)).lifecycle).toBe('terminated')
      expect(await it.events(id, 'subagent_ended')).toMatchObject([{ reference, outcome }])
      await expect(it.threads.send(reference, 'more')).rejects.toMatchObject({
        code: 'THREAD_TERMINATED',
      })
    }
})

test('SA-42 the children of a disposable child end with it, also those that are idle', async () => {
  const kept = child('kept')
  const helper = child('helper', {
    script: [calls('subagent_create', { name: 'Ada', message: 'go' }), finished('done')],
    tools: [{ name: kept, resumable: {} }],
  })
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), says('Thanks.')],
    tools: [helper],
  })
  const it = await simulate({ agents: [boss] })
  const { id } = await it.ask('go')
  await it.idle()
  const reference = await childOf(it, id)
  const lowest = await childOf(it, reference)
  expect((await it.threads.get(lowest)).lifecycle).toBe('terminated')
  expect(await it.threads.children(reference)).toMatchObject([{ status: 'terminated' }])
})

test('SA-42 a parent that is stopped stops the child it waits for, also one that waits for a person', async () => {
  const helper = child('helper', { script: [calls('burn')], tools: [burn] })
  const boss = solo('boss', { script: [calls('helper', { message: 'go' })], tools: [helper] })
  const it = await simulate({ agents: [boss] })
  const { id, outcome } = await it.ask('go')
  expect(outcome).toBe('waiting')
  await it.threads.stop(id)
  await it.idle()
  expect(await it.events(await childOf(it, id), 'session_end')).toMatchObject([
    { outcome: 'stopped' },
  ])
  expect(await it.runtime.inbox.list({})).toEqual([])
})

test('SA-39 a parent that is stopped leaves the children alone that it does not wait for', async () => {
  const [started, go, waiting] = [latch(), latch(), latch()]
  const helper = child('helper', {
    script: async () => {
      started.open()
      await go.reached
      return finished('done all the same')
    },
  })
  const slow = tool('slow', async (_state, _args, signal) => {
    waiting.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  })
  const boss = solo('boss', {
    script: [calls('helper', { message: 'go' }), calls('slow'), says('Good.')],
    tools: [slow, { name: helper, blocking: false }],
  })
  const it = await simulate({ agents: [boss] })
  const id = await it.create({ message: 'go' })
  await started.reached
  await waiting.reached
  await it.threads.stop(id)
  go.open()
  await it.idle()
  const reference = await childOf(it, id)
  expect(await it.events(reference, 'stop_requested')).toEqual([])
  expect(await it.events(reference, 'session_end')).toMatchObject([
    { outcome: 'completed', message: 'done all the same' },
  ])
  await it.run(id, 'and?')
  expect(linesOf(requestsOf(boss)[2]).join('\n')).toContain('done all the same')
})

test.each(['fail', 'stop'] as const)(
  'SA-44 a resumable child is idle after a %s, counts, and answers again',
  async (way) => {
    const started = latch()
    const helper = child('helper', {
      script: [
        way === 'fail'
          ? calls('fail', { why: 'no paper' })
          : () => {
              started.open()
              return [waits(Infinity)]
            },
        finished('now it worked'),
      ],
    })
    const boss = solo('boss', {
      script: [
        calls('subagent_create', { name: 'Ada', message: 'one' }),
        calls('subagent_create', { name: 'Bob', message: 'one' }),
        ({ messages }) => {
          const [, reference] = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))!
          return calls('subagent_message', { reference, message: 'two' })
        },
        says('Thanks.'),
      ],
      tools: [{ name: helper, resumable: { maxInstances: 1 } }],
    })
    const it = await simulate({ agents: [boss] })
    const id = await it.create()
    const { commit } = it.store
    const seen: string[] = []
    it.store.commit = async (change) => {
      const result = await commit.call(it.store, change)
      if (change.point.includes('session_end') && change.threads[0]?.id !== id)
        seen.push(...(await it.threads.children(id)).map(({ status }) => status))
      return result
    }
    const run = it.run(id, 'go')
    if (way === 'stop') {
      await started.reached
      await it.threads.stop(await childOf(it, id))
    }
    expect((await run).text).toBe('Thanks.')
    await it.idle()
    it.store.commit = commit
    expect(seen).toEqual(['idle', 'idle'])
    const reference = await childOf(it, id)
    const told = linesOf(requestsOf(boss).at(-1))
    expect(told.find((line) => line.includes('There may be 1'))).toContain(reference)
    const why = way === 'fail' ? 'no paper' : 'The session ended. (reason: stopped)'
    expect(told.join('\n')).toContain(`has reported a failure:\n\n${why}`)
    expect(told.join('\n')).toContain('now it worked')
    expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'idle' }])
  },
)

test('SA-31 the mapped text comes as it was written, to a call that waits and as a message', async () => {
  const summary = '  indented\n\n'
  const stop = tool('stop', (state) => void state.stopSession({ result: summary }))
  const stopFailed = tool(
    'stop_failed',
    (state) => void state.stopSession({ result: summary, failed: true }),
  )
  for (const kind of ['finish', 'fail', 'stop', 'stop_failed'])
    for (const blocking of [true, false]) {
      const args = { summary, why: summary }
      const helper = child('helper', {
        script: [[says('And this.'), calls(kind, args)]],
        tools: [stop, stopFailed],
      })
      const boss = solo('boss', {
        script: [calls('helper', { message: 'go' }), says('Ok.'), says('I see.')],
        tools: [{ name: helper, blocking }],
      })
      const it = await simulate({ agents: [boss] })
      const { id } = await it.ask('go')
      await it.idle()
      const [ended] = await it.events(id, 'interrupt_answered')
      const [, queued] = await it.events(id, 'message_queued')
      const reference = await childOf(it, id)
      const isResult = kind === 'finish' || kind === 'stop'
      const said = isResult ? 'returned the following result' : 'reported a failure'
      if (blocking)
        expect(ended!.answer).toEqual(
          isResult ? { type: 'result', value: summary } : { type: 'error', message: summary },
        )
      else
        expect(queued!.message.content).toEqual([
          { type: 'text', text: `Subagent (reference: ${reference}) has ${said}:\n\n${summary}` },
        ])
    }
})
