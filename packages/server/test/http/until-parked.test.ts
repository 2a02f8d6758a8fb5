import { SseDecoder, type SseEvent } from '@skein/base'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { KEYS, startKit, type Kit } from './http-kit.ts'

const RUNS = process.env['SKEIN_DEEP'] ? 200 : 20
const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

async function start(): Promise<{ kit: Kit; id: string }> {
  const kit = await startKit()
  kits.push(kit)
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  return { kit, id }
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  args: z.object({ text: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { text }) => text,
})

/** An agent whose child asks a person. */
const boss = defineAgent({
  name: 'boss',
  sideA: {
    prompt: definePrompt({
      name: 'boss',
      prompt: 'Delegate.',
      model: scripted(({ messages }) =>
        messages.at(-1)?.type === 'user' ? calls('asker', { task: 'pay' }) : says('Done.'),
      ),
      tools: [
        {
          name: defineAgent({
            name: 'asker',
            type: 'dual_ai',
            exposeAsTool: true,
            toolDescription: 'Asks.',
            maxSessionTurns: 4,
            sideA: {
              prompt: definePrompt({
                name: 'asker_a',
                prompt: 'Pay.',
                model: scripted(() => calls('pay', { text: 'Paid.' })),
                tools: [pay],
                requiredSchema: z.object({ task: z.string() }),
              }),
              sessionStop: { name: pay, messageProperty: 'text' },
            },
            sideB: {
              prompt: definePrompt({
                name: 'asker_b',
                prompt: 'Review.',
                model: scripted(() => says('Go on.')),
              }),
            },
          }),
          initUserMessageProperty: 'task',
        },
      ],
    }),
  },
})

const until = (kit: Kit, id: string, query = '', headers?: HeadersInit): Promise<Response> =>
  kit.ask('acme', 'GET', `/threads/${id}/stream?until=parked${query}`, undefined, headers)

async function read(response: Response): Promise<SseEvent[]> {
  expect(response.status).toBe(200)
  return [...new SseDecoder().push(new Uint8Array(await response.arrayBuffer()))]
}

const soon = (): Promise<'still open'> =>
  new Promise((resolve) => setTimeout(() => resolve('still open'), 50))

test('a thread that waits for a child that works is not parked', async () => {
  const { kit, id } = await start()
  const { seq } = await kit.runtime.threads.send(id, 'Please work.')
  const events = await read(await until(kit, id, `&after=${seq}`))
  expect(events.at(-1)?.event).toBe('stream_end')
  expect(events.filter(({ event }) => event === 'session_end')).toHaveLength(1)
  expect(events.some(({ data }) => data.includes('That is done.'))).toBe(true)
})

test('a tree stream ends when nothing of the tree works any more, with every event of every thread', async () => {
  const { kit, id } = await start()
  await kit.runtime.threads.send(id, 'Please work.')
  const events = await read(await until(kit, id, '&tree=true'))
  expect(events.pop()?.event).toBe('stream_end')
  const got = events.map(({ data }) => JSON.parse(data) as { threadId: string; id: string })
  const threads = await kit.runtime.threads.list({ rootId: id })
  expect(threads).toHaveLength(2)
  for (const thread of threads) {
    const seqs = got
      .filter(({ threadId }) => threadId === thread.id)
      .map(({ id: number }) => Math.trunc(Number(number)))
    expect([...new Set(seqs)]).toEqual(Array.from({ length: thread.seq }, (_, index) => index + 1))
  }

  // The same again, on a tree that is parked already.
  const again = await read(await until(kit, id, '&tree=true'))
  expect(again.at(-1)?.event).toBe('stream_end')
})

test('a live tree stream leaves out what descendants did before, also after a break', async () => {
  const { kit, id } = await start()
  await kit.runtime.threads.run(id, 'Please work.')
  const [before] = await kit.runtime.threads.list({ parentId: id })
  const { seq } = await kit.runtime.threads.get(id)
  const reading = until(kit, id, `&tree=true&live=true&after=${seq}`).then(read)
  await kit.runtime.threads.send(id, 'Please work.')
  const events = await reading
  expect(events.pop()?.event).toBe('stream_end')
  const numbersOf = (list: readonly SseEvent[], threadId: string): number[] =>
    list
      .map(({ data }) => JSON.parse(data) as { threadId: string; id: string })
      .filter((one) => one.threadId === threadId)
      .map((one) => Math.trunc(Number(one.id)))
  const threads = await kit.runtime.threads.list({ parentId: id })
  const now = threads.find((thread) => thread.id !== before!.id)!
  expect(numbersOf(events, before!.id)).toEqual([])
  expect([...new Set(numbersOf(events, now.id))]).toEqual(
    Array.from({ length: now.seq }, (_, index) => index + 1),
  )
  expect(numbersOf(events, id)[0]).toBe(seq + 1)
  // A client that reconnects names every child, so the new one is read on and the old one is not begun.
  const half = events.findIndex(({ data }) => data.includes(`"threadId":"${now.id}"`)) + 2
  const rest = await read(
    await until(kit, id, `&tree=true&live=true&after=${seq}`, {
      'last-event-id': events[half]!.id,
    }),
  )
  for (const thread of [id, now.id, before!.id])
    expect([...new Set(numbersOf(rest.slice(0, -1), thread))]).toEqual([
      ...new Set(numbersOf(events.slice(half + 1), thread)),
    ])
})

test('a live tree stream follows a descendant that waits from where it is', async () => {
  const kit = await startKit({ runtime: { agents: [boss] } })
  kits.push(kit)
  const { id } = await kit.runtime.threads.create({ agent: 'boss', tenant: 'acme' })
  await kit.runtime.threads.send(id, 'Go.')
  await read(await until(kit, id))
  const { seq } = await kit.runtime.threads.get(id)
  const [child] = await kit.runtime.threads.list({ parentId: id })
  const reading = until(kit, id, `&tree=true&live=true&after=${seq}`).then(read)
  const [item] = await kit.runtime.inbox.list({ tenant: 'acme' })
  await soon()
  await kit.runtime.inbox.approve({ ...item!, by: 'ada' })
  const ids = (await reading)
    .slice(0, -1)
    .map(({ data }) => JSON.parse(data) as { threadId: string; id: string })
    .filter(({ threadId }) => threadId === child!.id)
    .map((one) => Math.trunc(Number(one.id)))
  const { seq: last } = await kit.runtime.threads.get(child!.id)
  expect([...new Set(ids)]).toEqual(
    Array.from({ length: last - child!.seq }, (_, index) => child!.seq + 1 + index),
  )
})

test('a stream that is opened before the message is sent does not end before the answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('Please work.', 'Hello', 'Take a note.'),
      fc.boolean(),
      fc.boolean(),
      fc.integer({ min: 0, max: 3 }),
      async (text, isTree, hasHistory, turns) => {
        const { kit, id } = await start()
        if (hasHistory) await kit.runtime.threads.run(id, 'Hello')
        const { seq } = await kit.runtime.threads.get(id)
        const reading = until(kit, id, `&tree=${isTree}&after=${seq}`).then(read)
        for (let turn = 0; turn < turns; turn++) await new Promise((next) => setImmediate(next))
        await kit.runtime.threads.send(id, text)
        const events = await reading
        expect(events.at(-1)?.event).toBe('stream_end')
        const ended = events.filter(({ event }) => event === 'session_end')
        expect(ended.length).toBeGreaterThan(0)
        const { seq: last } = await kit.runtime.threads.get(id)
        const seen = isTree
          ? events.flatMap(({ data }) => {
              const { threadId, id: number } = JSON.parse(data) as { threadId: string; id: string }
              return threadId === id ? [number] : []
            })
          : events.slice(0, -1).map(({ id: number }) => number)
        expect(Math.trunc(Number(seen.at(-1)))).toBe(last)
        await kit.stop()
      },
    ),
    { numRuns: RUNS },
  )
}, 120_000)

test('a thread that waits for a person is parked, and a stream opened before the decision shows what follows', async () => {
  const { kit, id } = await start()
  await kit.runtime.threads.send(id, 'A refund.')
  const asked = await read(await until(kit, id))
  expect(asked.map(({ event }) => event)).toContain('interrupt_opened')
  const reading = until(kit, id, `&after=${asked.at(-2)!.id}`).then(read)
  expect(await Promise.race([reading, soon()])).toBe('still open')
  const [item] = await kit.runtime.inbox.list({ tenant: 'acme' })
  await kit.runtime.inbox.approve({ ...item!, by: 'ada' })
  const events = await reading
  expect(events.map(({ event }) => event)).toContain('session_end')
})

test('a client that reconnects after the last event is told the end', async () => {
  const { kit, id } = await start()
  const { seq } = await kit.runtime.threads.send(id, 'Hello')
  await kit.runtime.threads.settled(id)
  const { seq: last } = await kit.runtime.threads.get(id)
  for (const tree of ['', '&tree=true']) {
    const headers = { 'last-event-id': String(last) }
    const events = await read(await until(kit, id, `${tree}&after=${seq}`, headers))
    expect(events.map(({ event }) => event)).toEqual(['stream_end'])
  }
})

test('a terminated thread ends its streams at once', async () => {
  const { kit, id } = await start()
  await kit.runtime.threads.terminate(id)
  const { seq } = await kit.runtime.threads.get(id)
  for (const query of [`&after=${seq}`, '&tree=true'])
    expect((await read(await until(kit, id, query))).at(-1)?.event).toBe('stream_end')
})

test('the typed client follows a message to its end, sent before or after the stream is opened', async () => {
  const { kit } = await start()
  const client = createClient({
    url: 'http://localhost',
    apiKey: KEYS.acme.key,
    fetch: (input, init) => kit.http.fetch(new Request(input, init)),
  })
  const { id, seq } = await client.threads.create({ agent: 'desk' })
  const first = (async () => {
    const types: string[] = []
    for await (const { event } of client.streamTree(id, { after: String(seq), untilParked: true }))
      types.push(event.type)
    return types
  })()
  await soon()
  await client.threads.send(id, 'Please work.')
  expect(await first).toContain('subagent_ended')

  const sent = await client.threads.send(id, 'Hello again')
  const types: string[] = []
  for await (const { event } of client.stream(id, { after: String(sent.seq), untilParked: true }))
    types.push(event.type)
  expect(types).toContain('session_end')
})
