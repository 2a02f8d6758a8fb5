import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { defineTool } from '@skein/runtime'
import { z } from 'zod'
import { linesOf, requestsOf, solo, tool } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate } from './support/simulate.ts'

describe('the order of calls', () => {
  /** Tools that note when they begin and end; each ends only when all that may run next to it have begun. */
  function noted(together: number) {
    const notes: string[] = []
    let begun = 0
    const all = latch()
    const make = (name: string, risk: 'read_only' | 'write_low_risk', waits: boolean) =>
      tool(
        name,
        async (_, { n }) => {
          notes.push(`${name}${String(n)} begins`)
          if (waits && ++begun === together) all.open()
          if (waits) await all.reached
          notes.push(`${name}${String(n)} ends`)
          return n
        },
        { risk },
      )
    return {
      notes,
      read: make('read', 'read_only', true),
      write: make('write', 'write_low_risk', false),
    }
  }

  test('one after the other, in the order of the model', async () => {
    const { notes, read, write } = noted(1)
    const agent = solo('orderly', {
      script: [
        [calls('read', { n: 1 }), calls('write', { n: 2 }), calls('read', { n: 3 })],
        says('x'),
      ],
      tools: [read, write],
    })
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(notes).toEqual(
      ['read1', 'write2', 'read3'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    )
  })

  test('with parallelToolCalls reads overlap, writes wait for all before and hold all after them', async () => {
    const { notes, read, write } = noted(2)
    const agent = solo('parallel', {
      script: [
        [
          calls('read', { n: 1 }),
          calls('read', { n: 2 }),
          calls('write', { n: 3 }),
          calls('write', { n: 4 }),
          calls('read', { n: 5 }),
        ],
        says('x'),
      ],
      tools: [read, write],
      prompt: { parallelToolCalls: true },
    })
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(notes.slice(0, 2).toSorted()).toEqual(['read1 begins', 'read2 begins'])
    expect(notes.slice(2, 4).toSorted()).toEqual(['read1 ends', 'read2 ends'])
    expect(notes.slice(4)).toEqual(
      ['write3', 'write4', 'read5'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    )
    // Results keep the order of the calls.
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe(
      'tool_result: read = 1, read = 2, write = 3, write = 4, read = 5',
    )
  })

  test('a read that ends first does not come first', async () => {
    const slow = latch()
    const agent = solo('parallel', {
      script: [[calls('slow'), calls('quick')], says('x')],
      tools: [
        tool('slow', async () => void (await slow.reached)),
        tool('quick', () => void slow.open()),
      ],
      prompt: { parallelToolCalls: true },
    })
    const it = await simulate({ agents: [agent] })
    await it.ask('go')
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe('tool_result: slow = null, quick = null')
  })
})

test('a vendor that gives an id again in a later message gets another call', async () => {
  const did: unknown[] = []
  const note = tool('note', (_, { n }) => did.push(n), { risk: 'write_low_risk' })
  const again = { id: 'call_0' }
  const agent = solo('repeats', {
    script: [calls('note', { n: 1 }, again), calls('note', { n: 2 }, again), says('x')],
    tools: [note],
  })
  const it = await simulate({ agents: [agent] })
  expect((await it.ask('go')).outcome).toBe('completed')
  expect(did).toEqual([1, 2])
  expect(linesOf(requestsOf(agent)[2]).filter((line) => line.startsWith('tool_result'))).toEqual([
    'tool_result: note = 1',
    'tool_result: note = 2',
  ])
})

test('arguments that are no JSON, or not what the tool asks for, go to the model', async () => {
  const strict = defineTool({
    name: 'strict',
    description: 'x',
    args: z.object({ n: z.number() }),
    risk: 'read_only',
    execute: (_, { n }) => n,
  })
  const agent = solo('sloppy', {
    script: [
      [calls('strict', '{"n": 1'), calls('strict', { n: 'one' }), calls('strict', { n: 1 })],
      says('x'),
    ],
    tools: [strict],
  })
  const it = await simulate({ agents: [agent] })
  const { id, outcome } = await it.ask('go')
  expect(outcome).toBe('completed')
  const ends = await it.events(id, 'tool_execution_end')
  expect(ends.map((end) => end.outcome)).toEqual(['failed', 'failed', 'success'])
})

describe('tools that run at the client', () => {
  const where = defineTool({
    name: 'where_am_i',
    description: 'Asks the phone.',
    args: z.object({ precise: z.boolean() }),
    risk: 'read_only',
  })
  const agent = () =>
    solo('guide', {
      script: [[calls('look'), calls('where_am_i', { precise: true })], says('Go left.')],
      tools: [where, tool('look')],
    })

  test('park the thread until someone answers, in another runtime too', async () => {
    const guide = agent()
    const it = await simulate({ agents: [guide] })
    const { id, outcome, waiting } = await it.ask('where to?')
    expect(outcome).toBe('waiting')
    expect(waiting).toMatchObject([
      { threadId: id, kind: 'input', toolName: 'where_am_i', arguments: { precise: true } },
    ])
    await it.idle()
    expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'waiting', waiting: 1 })
    const again = await it.restart()
    const [item] = await again.runtime.inbox.list()
    await again.runtime.inbox.answer(item!, { type: 'result', value: { lat: 52 } })
    await again.idle()
    expect((await again.threads.settled(id)).text).toBe('Go left.')
    expect(linesOf(requestsOf(guide)[1]).at(-1)).toBe(
      'tool_result: look = "ok", where_am_i = {"lat":52}',
    )
    expect(await again.runtime.inbox.list()).toEqual([])
    await expect(
      again.runtime.inbox.answer(item!, { type: 'result', value: 1 }),
    ).rejects.toMatchObject({ code: 'INTERRUPT_NOT_FOUND' })
  })

  test('an error of the client goes to the model', async () => {
    const guide = agent()
    const it = await simulate({ agents: [guide] })
    const { waiting } = await it.ask('where to?')
    await it.runtime.inbox.answer(waiting[0]!, { type: 'error', message: 'no signal' })
    await it.idle()
    expect(linesOf(requestsOf(guide)[1]).at(-1)).toBe(
      'tool_result: look = "ok", where_am_i ! no signal',
    )
  })

  test('a message that comes meanwhile waits for the answer', async () => {
    const guide = agent()
    const it = await simulate({ agents: [guide] })
    const { id, waiting } = await it.ask('where to?')
    await it.send(id, 'hello?')
    await it.idle()
    expect(requestsOf(guide)).toHaveLength(1)
    await it.runtime.inbox.answer(waiting[0]!, { type: 'result', value: 'here' })
    await it.idle()
    expect(linesOf(requestsOf(guide)[1]).at(-1)).toBe('user: hello?')
  })

  test('no one answers: after its time the call has failed', async () => {
    const guide = agent()
    const it = await simulate({ agents: [guide], limits: { interruptTtlMs: 60_000 } })
    const { id, waiting } = await it.ask('where to?')
    await it.idle()
    await it.advance(60_000)
    expect(linesOf(requestsOf(guide)[1]).at(-1)).toContain('where_am_i ! Nobody answered in time.')
    expect((await it.threads.settled(id)).outcome).toBe('completed')
    await expect(
      it.runtime.inbox.answer(waiting[0]!, { type: 'result', value: 1 }),
    ).rejects.toMatchObject({ code: 'INTERRUPT_NOT_FOUND' })
  })

  test('stop settles what waits', async () => {
    const guide = agent()
    const it = await simulate({ agents: [guide] })
    const { id } = await it.ask('where to?')
    await it.threads.stop(id)
    await it.idle()
    expect(await it.runtime.inbox.list()).toEqual([])
    expect(await it.threads.get(id)).toMatchObject({ lifecycle: 'stopped', waiting: 0 })
    await it.run(id, 'never mind')
    expect(linesOf(requestsOf(guide)[1]).at(-2)).toContain('where_am_i ! The user stopped the run.')
  })
})

describe('what a tool changes', () => {
  test('becomes true with its result; a tool that throws has changed nothing', async () => {
    const change = tool('change', async (state, { fails }) => {
      state.setValue('key', fails ? 'half' : 'whole')
      await state.writeFile(fails ? '/half.txt' : '/whole.txt', 'x')
      state.queueMessage({ content: fails ? 'half' : 'whole' })
      expect(state.getValue('key')).toBe(fails ? 'half' : 'whole')
      if (fails) throw new Error('no')
    })
    const agent = solo('changes', {
      script: [[calls('change'), calls('change', { fails: true })], says('x')],
      tools: [change],
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('go')
    expect(await it.threads.values.list(id)).toEqual({ key: 'whole' })
    expect((await it.threads.files.list(id)).map(({ path }) => path)).toEqual(['/whole.txt'])
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toBe('user: whole')
  })

  test('a tool invokes the tools it lists and no others; arguments are checked', async () => {
    const inner = defineTool({
      name: 'inner',
      description: 'x',
      args: z.object({ n: z.number() }),
      risk: 'read_only',
      execute: (_, { n }) => n * 2,
    })
    const outer = tool(
      'outer',
      async (state, { name, n }) => state.invokeTool(String(name), { n: n as number }),
      {
        uses: [inner],
      },
    )
    const agent = solo('nests', {
      script: [
        [
          calls('outer', { name: 'inner', n: 4 }),
          calls('outer', { name: 'other', n: 4 }),
          calls('outer', { name: 'inner', n: 'x' }),
        ],
        says('x'),
      ],
      tools: [outer, tool('other')],
    })
    const it = await simulate({ agents: [agent] })
    const { id } = await it.ask('go')
    const results = linesOf(requestsOf(agent)[1]).at(-1)!
    expect(results).toMatch(/^tool_result: outer = 8, outer ! .*"other".*, outer ! /)
    expect((await it.events(id, 'tool_execution_start')).map(({ toolName }) => toolName)).toEqual([
      'outer',
      'outer',
      'outer',
    ])
  })

  test('a tool that takes too long has failed', async () => {
    const slow = tool('slow', () => new Promise(() => {}), { timeoutMs: 5 })
    const agent = solo('waits', { script: [calls('slow'), says('x')], tools: [slow] })
    const it = await simulate({ agents: [agent] })
    expect((await it.ask('go')).outcome).toBe('completed')
    expect(linesOf(requestsOf(agent)[1]).at(-1)).toMatch(/^tool_result: slow ! /)
  })
})
