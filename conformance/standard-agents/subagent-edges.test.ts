// Subagents in states, lists and with values that are rarely met together.
import { describe, expect, test } from 'vitest'
import { calls, fails, says } from '@skein/ai/testing'
import { defineEffect, defineTool, type SubagentToolConfig } from '@skein/runtime'
import {
  child,
  finish,
  finished,
  linesOf,
  pair,
  requestsOf,
  type SideSetup,
  solo,
  tool,
} from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

const states = ['running', 'idle', 'awaiting_human', 'stopped', 'failed'] as const

test.each(states)(
  'SA-45 SA-67 a child that is %s gets the message of its parent',
  async (state) => {
    const [begun, go] = [latch(), latch()]
    const ask = defineTool({ name: 'ask', description: 'Asks a person.', risk: 'read_only' })
    const helper = child('helper', {
      script: async ({ messages }, index) => {
        if (index > 0 || JSON.stringify(messages).includes('more')) return finished('done')
        begun.open()
        if (state === 'awaiting_human') return calls('ask')
        if (state === 'failed') return fails('no')
        if (state !== 'idle') await go.reached
        return finished('done')
      },
      tools: [ask],
    })
    let reference = ''
    const top = solo('boss', {
      script: (request) => {
        const lines = linesOf(request).filter((line) => !line.startsWith('user: [runtime]'))
        if (lines.at(-1) === 'user: create')
          return calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
        if (lines.at(-1) === 'user: message')
          return calls('subagent_message', { reference, message: 'more' })
        return says('I see.')
      },
      tools: [{ name: helper, blocking: false, resumable: {} }],
    })
    const it = await simulate({ agents: [top], limits: { modelAttempts: 1 } })
    const { id } = await it.ask('create')
    reference = (await it.threads.children(id))[0]!.reference
    await begun.reached
    if (state === 'stopped') {
      await it.threads.stop(reference)
      go.open()
    }
    if (state !== 'running') await it.idle()
    const { lifecycle } = await it.threads.get(reference)
    expect(lifecycle).toBe(state === 'awaiting_human' ? 'waiting' : state)
    await it.run(id, 'message')
    expect(requestsOf(top).flatMap(linesOf)).toContain(
      `tool_result: subagent_message = "The message was sent to subagent (reference: ${reference})."`,
    )
    go.open()
    const [item] = await it.runtime.inbox.list()
    if (item) await it.runtime.inbox.answer(item, { type: 'result', value: 'yes' })
    await it.idle()
    expect(linesOf(requestsOf(helper).at(-1))).toContain('user: more')
  },
)

describe('several immediate children', () => {
  const key = { name: 'KEY', required: true, scoped: true }
  const faults: readonly [string, Partial<SubagentToolConfig>][] = [
    ['is switched off', { optional: 'NEVER' }],
    ['lacks a variable', {}],
  ]

  test.each(faults.flatMap((fault) => [0, 1, 2].map((place) => [...fault, place] as const)))(
    'SA-51 one that %s does not keep the others from starting: %j at place %i',
    async (fault, config, place) => {
      const needs = fault === 'lacks a variable' ? { prompt: { variables: [key] } } : {}
      const names = ['one', 'two']
      const tools: SubagentToolConfig[] = names.map((name) => ({
        name: child(name),
        immediate: true,
        blocking: false,
      }))
      const bad = { name: child('bad', needs), immediate: true, blocking: false, ...config }
      const top = solo('boss', {
        script: () => says('I see.'),
        tools: tools.toSpliced(place, 0, bad),
      })
      const it = await simulate({ agents: [top] })
      const id = await it.create()
      await it.idle()
      expect((await it.events(id, 'subagent_created')).map(({ name }) => name)).toEqual(names)
      expect(
        (await it.threads.list({ parentId: id })).map(({ agent }) => agent).toSorted(),
      ).toEqual(names)
    },
  )
})

test.each(
  (['a', 'b'] as const).flatMap((side) =>
    (['a', 'b'] as const).map((flag) => [side, flag] as const),
  ),
)(
  'SA-49 SA-50 a branch of side %s is judged by the variables of that side; side %s has the flag',
  async (side, flag) => {
    const helper = child('helper')
    const setup = (own: 'a' | 'b', script: SideSetup['script'], rest: Partial<SideSetup> = {}) => ({
      script,
      ...rest,
      tools: [...(rest.tools ?? []), ...(own === side ? [{ name: helper, optional: 'WITH' }] : [])],
      prompt: { env: { WITH: own === flag ? 'yes' : 'no' } },
    })
    const top = pair('boss', {
      a: setup('a', () => says('Continue.')),
      b: setup('b', [calls('finish')], { tools: [finish], sessionStop: finish }),
    })
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    const offered = requestsOf(top, side)[0]!.tools.map(({ name }) => name)
    expect(offered.includes('helper')).toBe(side === flag)
  },
)

test.each([{}, { immediate: { scopedEnv: ['OWN'] } }])(
  'SA-55 SA-61 a variable that is set to the empty text has a value: %j',
  async (config: Partial<SubagentToolConfig>) => {
    const seen: unknown[] = []
    const names = ['KEY', 'OWN', 'PLAIN']
    const read = tool('read', (state) => {
      seen.push(names.map((name) => (state.hasEnv(name) ? state.env(name) : undefined)))
    })
    const helper = child('helper', {
      script: [calls('read'), finished('done')],
      tools: [read],
      prompt: { variables: [{ name: 'KEY', required: true, scoped: true }] },
    })
    const top = solo('boss', {
      script: (_, index) =>
        index === 0 && !config.immediate ? calls('helper', { message: 'go' }) : says('I see.'),
      tools: [{ name: helper, ...config }],
    })
    const it = await simulate({ agents: [top] })
    const id = await it.create({ env: Object.fromEntries(names.map((name) => [name, ''])) })
    await it.run(id, 'hi')
    expect(await it.events(id, 'variables_requested')).toEqual([])
    expect(seen).toEqual([['', '', '']])
  },
)

test('SA-57 SA-58 what is hidden is not offered; a resumable child that started by itself can be messaged', async () => {
  const [early, secret] = [child('early'), child('secret')]
  let reference = ''
  const top = solo('boss', {
    script: (request) =>
      linesOf(request).findLast((line) => !line.startsWith('user: [runtime]')) === 'user: speak'
        ? calls('subagent_message', { reference, message: 'more' })
        : says('I see.'),
    subagents: [
      { agent: early, blocking: false, immediate: true, resumable: {} },
      { agent: secret, blocking: false, immediate: true, hidden: true, resumable: {} },
    ],
  })
  const it = await simulate({ agents: [top] })
  const id = await it.create()
  await it.idle()
  reference = (await it.threads.children(id))[0]!.reference
  await it.run(id, 'speak')
  await it.idle()
  const offered = requestsOf(top).at(-1)!.tools
  expect(offered.map(({ name }) => name)).toEqual(['subagent_create', 'subagent_message'])
  expect(offered[0]!.description).not.toContain('secret')
  expect(offered[0]!.parameters).toMatchObject({
    type: 'object',
    properties: {
      agent: { type: 'string', enum: ['early'] },
      name: { type: 'string', minLength: 1 },
      message: { type: 'string' },
      attachments: { type: 'array', items: { type: 'string' } },
      arguments: { type: 'object' },
    },
    required: ['agent', 'name'],
  })
  expect(offered[1]!.parameters).toMatchObject({ required: ['reference', 'message'] })
  expect(linesOf(requestsOf(early).at(-1))).toContain('user: more')
})

test('SA-48 SA-76 the entry of a disposable child has the fields of the spec, too', async () => {
  const [begun, go] = [latch(), latch()]
  const helper = child('helper', {
    script: async () => {
      begun.open()
      await go.reached
      return finished('done')
    },
  })
  const top = solo('boss', {
    script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('I see.')),
    tools: [{ name: helper, blocking: false }],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  await begun.reached
  const [made] = await it.events(id, 'subagent_created')
  expect(await it.threads.children(id)).toEqual([
    {
      reference: made!.reference,
      name: 'helper',
      description: 'Two who do helper.',
      resumable: false,
      blocking: false,
      createdAt: Date.UTC(2026, 0, 1) * 1000,
      status: 'running',
      parentCommunication: 'implicit',
    },
  ])
  go.open()
  await it.idle()
})

test('SA-63 the inbox says who answered a request for variables, and never with what', async () => {
  const helper = child('helper', {
    prompt: { variables: [{ name: 'KEY', type: 'secret', required: true, scoped: true }] },
  })
  const top = solo('boss', {
    script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('I see.')),
    tools: [helper],
  })
  const it = await simulate({ agents: [top] })
  const { id } = await it.ask('hi')
  const [item] = await it.runtime.inbox.list()
  const before = await it.runtime.inbox.get(item!)
  expect(before).toEqual({
    ...item,
    status: 'waiting',
    sentence: 'boss needs a value before it can start helper.',
    undo: null,
    evidence: [],
    approvedBy: [],
    decision: undefined,
  })
  const values = { KEY: 'canary-7731' }
  await it.threads.variables.provide(id, item!.interruptId, values, { by: 'ann' })
  await it.idle()
  expect(await it.runtime.inbox.get(item!)).toEqual({
    ...before,
    status: 'decided',
    decision: { type: 'provided', at: '2026-01-01T00:00:00.000Z', by: 'ann' },
  })
})

test.each(['an effect', 'an endpoint', 'a person', 'a person, without its children'])(
  'SA-86 an idle child that %s terminates is terminated for its parent',
  async (who) => {
    const end = defineEffect({
      name: 'end',
      description: 'Ends.',
      risk: 'read_only',
      execute: (state) => state.terminate(),
    })
    const helper = child('helper')
    const top = solo('boss', {
      script: (_, index) =>
        index === 0
          ? calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
          : says('I see.'),
      tools: [{ name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top], effects: [end] })
    const { id } = await it.ask('hi')
    await it.idle()
    const [{ reference } = { reference: '' }] = await it.threads.children(id)
    if (who === 'an effect') await it.threads.effects.schedule(reference, 'end', {}, { delayMs: 0 })
    else if (who === 'an endpoint')
      await it.runtime.withState(reference, (state) => state.terminate())
    else await it.threads.terminate(reference, { detach: who !== 'a person' })
    await it.idle()
    expect(await it.threads.children(id)).toMatchObject([{ reference, status: 'terminated' }])
    expect(await it.events(id, 'subagent_ended')).toMatchObject([
      { reference, outcome: 'terminated' },
    ])
  },
)
