// Messages to a parent from every kind of code of its child, and stops between the two (Standard Agents §7.10).
import { expect, test } from 'vitest'
import { calls, says, waits } from '@skein/ai/testing'
import { defineAgent, defineEffect, defineHook, defineTool, type ThreadState } from '@skein/runtime'
import {
  child,
  finished,
  linesOf,
  requestsOf,
  solo,
  tool,
  type SideSetup,
} from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const helperOf = (side: Partial<SideSetup> = {}) =>
  child('helper', { script: () => finished('done'), ...side })

const start = calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })

test.each(['a tool', 'a hook', 'a handler', 'an effect', 'an endpoint'])(
  'SA-75 SA-83 what %s of the child tells the parent comes once, with its file, and wakes it',
  async (who) => {
    const tell = async (state: ThreadState) => {
      await state.writeFile('/note.txt', 'fresh')
      state.notifyParent(`from ${who}`, ['/note.txt'])
    }
    const hook = defineHook({ id: 'tell', hook: 'tool_call_started', execute: tell })
    const effect = defineEffect({ name: 'tell', execute: tell })
    const once: SideSetup['script'] = [calls('tell'), calls('finish', { summary: 'done' })]
    const sides: Record<string, Partial<SideSetup>> = {
      'a tool': { script: once, tools: [tool('tell', tell)] },
      'a hook': { prompt: { hooks: [hook] } },
    }
    const plain = helperOf(sides[who])
    const handler = async (state: ThreadState) => {
      await tell(state)
      state.stopSession({ result: 'done' })
    }
    const helper = who === 'a handler' ? defineAgent({ ...plain, sideA: { handler } }) : plain
    const top = solo('boss', {
      script: (_, index) => (index === 0 ? start : says('I see.')),
      tools: [{ name: helper, blocking: false, resumable: { parentCommunication: 'explicit' } }],
    })
    const it = await simulate({ agents: [top], effects: [effect] })
    const { id } = await it.ask('hi')
    await it.idle()
    const { reference } = (await it.threads.children(id))[0]!
    if (who === 'an effect') await it.threads.effects.schedule(reference, 'tell', null, 0)
    if (who === 'an endpoint') await it.runtime.withState(reference, tell)
    await it.idle()
    const files = await it.threads.files.list(id)
    expect(files).toMatchObject([{ sizeBytes: 5 }])
    const { path } = files[0]!
    const heard = (await it.threads.messages(id, { includeSilent: true })).filter(
      ({ subagentId }) => subagentId !== undefined,
    )
    expect(
      heard.map(({ message, isSilent, subagentId, attachments }) => ({
        text: message.text,
        isSilent,
        subagentId,
        attachments,
      })),
    ).toEqual([
      {
        text: `from ${who}\n\n${path}`,
        isSilent: true,
        subagentId: reference,
        attachments: [path],
      },
    ])
    expect(linesOf(requestsOf(top).at(-1))).toContain(`user: from ${who}\n\n${path}`)
  },
)

test('SA-69 SA-83 a report to a parent that a person stopped waits for the next message of a person', async () => {
  const [working, go] = [latch(), latch()]
  const helper = helperOf({
    script: async () => {
      await go.reached
      return calls('finish', { summary: 'found' })
    },
  })
  const top = solo('boss', {
    script: (_, index) => {
      if (index === 0) return start
      if (index > 1) return says('I see.')
      working.open()
      return [waits(Infinity)]
    },
    tools: [{ name: helper, blocking: false, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create({ message: 'hi' })
  await working.reached
  await it.threads.stop(id)
  go.open()
  await it.idle()
  expect(requestsOf(top)).toHaveLength(2)
  expect((await it.threads.get(id)).lifecycle).toBe('stopped')
  await it.run(id, 'and?')
  const [report, question] = linesOf(requestsOf(top)[2]).slice(-3)
  expect([report!.endsWith('found'), question]).toEqual([true, 'user: and?'])
})

test('SA-71 a child that a person stops has reported a failure', async () => {
  const working = latch()
  const helper = helperOf({
    script: () => {
      working.open()
      return [waits(Infinity)]
    },
  })
  const top = solo('boss', {
    script: (_, index) => (index === 0 ? start : says('I see.')),
    tools: [{ name: helper, blocking: false, resumable: {} }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await working.reached
  const { reference } = (await it.threads.children(id))[0]!
  await it.threads.stop(reference)
  await it.idle()
  expect(
    requestsOf(top)
      .flatMap(linesOf)
      .find((line) => line.includes('has re')),
  ).toBe(
    `user: Subagent (reference: ${reference}) has reported a failure:\n\nThe session ended. (reason: stopped)`,
  )
  expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
})

test.each(['works', 'waits for a person'])(
  'SA-84 a stop of the parent reaches a child that %s on a message, and no one is asked any more',
  async (what) => {
    const busy = latch()
    const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
    let reference = ''
    const helper = helperOf({
      script: (_, index) => {
        if (index === 0) return calls('finish', { summary: 'ready' })
        busy.open()
        return what === 'works' ? [waits(Infinity)] : calls('ask')
      },
      tools: [ask],
    })
    const top = solo('boss', {
      script: (_, index) => {
        if (index === 0) return start
        if (index === 1) return says('Made.')
        return calls('subagent_message', { reference, message: 'more' })
      },
      tools: [{ name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    reference = (await it.threads.children(id))[0]!.reference
    await it.send(id, 'continue')
    await busy.reached
    if (what !== 'works') await it.idle()
    await it.threads.stop(id)
    await it.idle()
    expect((await it.threads.get(reference)).lifecycle).toBe('stopped')
    expect(await it.runtime.inbox.list()).toEqual([])
    expect(await it.threads.children(id)).toMatchObject([{ status: 'idle' }])
  },
)

test('SA-85 what waits for a person in a terminated thread waits no more', async () => {
  const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
  const top = solo('boss', { script: [calls('ask')], tools: [ask] })
  const it = await simulate({ agents: [top] })
  const { id, waiting } = await it.ask('hi')
  expect(waiting).toHaveLength(1)
  expect((await it.threads.get(id)).waiting).toBe(1)
  const stopped = await it.restart({ starts: false })
  await stopped.threads.terminate(id)
  // Immediately, before anything works on the thread again.
  expect((await stopped.threads.get(id)).waiting).toBe(0)
  expect(await stopped.runtime.inbox.list()).toEqual([])
  const { interruptId } = waiting[0]!
  await expect(
    stopped.runtime.inbox.answer({ threadId: id, interruptId }, { type: 'result', value: 1 }),
  ).rejects.toMatchObject({ code: 'THREAD_TERMINATED' })
})
