import { SseDecoder, type SseEvent } from '@skein/base'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { says, scripted, waits } from '@skein/ai/testing'
import { defineAgent, definePrompt } from '@skein/runtime'
import { startKit, type Kit } from './http-kit.ts'

const RUNS = process.env['SKEIN_DEEP'] ? 200 : 25
const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

/** An agent that speaks in pieces, with a breath between them. */
const talker = defineAgent({
  name: 'talker',
  sideA: {
    prompt: definePrompt({
      name: 'talker',
      prompt: 'Talk.',
      model: scripted(({ messages }) =>
        [1, 2, 3, 4, 5, 6].flatMap((i) => [says(`${messages.length}.${i} `), waits(0)]),
      ),
    }),
  },
})

async function startTalker(): Promise<{ kit: Kit; id: string }> {
  const kit = await startKit({ runtime: { agents: [talker] } })
  kits.push(kit)
  const { id } = await kit.json<{ id: string }>('acme', 'POST', '/threads', { agent: 'talker' })
  return { kit, id }
}

/** Reads some events and goes away, in the middle of a chunk perhaps. */
async function readSome(kit: Kit, path: string, after: string, count: number): Promise<SseEvent[]> {
  const response = await kit.ask('acme', 'GET', path, undefined, { 'last-event-id': after })
  expect(response.status).toBe(200)
  const events: SseEvent[] = []
  const decoder = new SseDecoder()
  const reader = response.body!.getReader()
  while (events.length < count && events.at(-1)?.event !== 'stream_end') {
    const { done, value } = await reader.read()
    if (done) break
    events.push(...decoder.push(value))
  }
  await reader.cancel()
  return events.slice(0, count)
}

test('however often a reader goes and comes back, it gets every event once and all that was said', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 40 }),
      async (cuts) => {
        const { kit, id } = await startTalker()
        const path = `/threads/${id}/stream?until=parked`
        for (const text of ['one', 'two', 'three']) await kit.runtime.threads.send(id, text)
        const got: SseEvent[] = []
        for (const count of [...cuts, Infinity]) {
          if (got.at(-1)?.event === 'stream_end') break
          got.push(...(await readSome(kit, path, got.at(-1)?.id ?? '0', count)))
        }
        expect(got.pop()?.event).toBe('stream_end')
        await kit.runtime.threads.settled(id)

        const log = await kit.runtime.threads.events(id, { limit: 1000 })
        const stored = got.filter(({ event }) => event !== 'text_delta')
        expect(stored.map(({ event }) => event)).toEqual(log.map(({ event }) => event.type))
        expect(stored.map(({ id: number }) => Math.trunc(Number(number)))).toEqual(
          log.map(({ seq }) => seq),
        )
        // What was heard of each step is a beginning of what was said in it, without a hole.
        for (const [index, heard] of heardBySteps(got).entries())
          expect(said(log)[index]!.startsWith(heard), `step ${index}: ${heard}`).toBe(true)
      },
    ),
    { numRuns: RUNS },
  )
}, 120_000)

function heardBySteps(events: readonly SseEvent[]): string[] {
  const steps: string[] = []
  for (const { event, data } of events) {
    if (event === 'step_start') steps.push('')
    if (event === 'text_delta')
      steps.push(`${steps.pop()}${(JSON.parse(data) as { text: string }).text}`)
  }
  return steps
}

function said(log: Awaited<ReturnType<Kit['runtime']['threads']['events']>>): string[] {
  return log.flatMap(({ event }) =>
    event.type === 'message_added' && event.message.type === 'assistant'
      ? [event.message.content.map((block) => ('text' in block ? String(block.text) : '')).join('')]
      : [],
  )
}

test('deltas can be left out, and come live otherwise', async () => {
  const { kit, id } = await startTalker()
  const live = readSome(kit, `/threads/${id}/stream`, '0', 20)
  const quiet = readSome(kit, `/threads/${id}/stream?deltas=false`, '0', 12)
  await kit.runtime.threads.send(id, 'Hello')
  expect((await live).map(({ event }) => event)).toContain('text_delta')
  expect((await quiet).map(({ event }) => event)).not.toContain('text_delta')
})

test('the header is the later word where an address names an event too', async () => {
  const { kit, id } = await startTalker()
  await kit.runtime.threads.run(id, 'Hello')
  const read = async (query: string, header?: string): Promise<string> => {
    const headers: Record<string, string> = header === undefined ? {} : { 'last-event-id': header }
    const response = await kit.ask(
      'acme',
      'GET',
      `/threads/${id}/stream?until=parked${query}`,
      undefined,
      headers,
    )
    return /id: (\S+)/.exec(await response.text())![1]!
  }
  expect([await read(''), await read('&after=3'), await read('&after=3', '5')]).toEqual([
    '1',
    '4',
    '6',
  ])
})

test('a stream ends with a word when its thread is removed', async () => {
  const { kit, id } = await startTalker()
  await kit.runtime.threads.run(id, 'Hello')
  const text = kit.ask('acme', 'GET', `/threads/${id}/stream`).then((response) => response.text())
  await new Promise((resolve) => setImmediate(resolve))
  await kit.runtime.threads.remove(id)
  expect((await text).trimEnd()).toMatch(/event: stream_end\ndata: \{\}$/)
})

test('sealed values and approval tokens are in no event that a client sees', async () => {
  const kit = await startKit()
  kits.push(kit)
  const { threads, inbox } = kit.runtime
  const { id } = await threads.create({
    agent: 'desk',
    tenant: 'acme',
    secrets: { PIN: 'canary-1' },
    env: { NAME: 'shown' },
  })
  await threads.run(id, 'A refund.')
  const [item] = await inbox.list({ tenant: 'acme' })
  await inbox.approve({ ...item!, by: 'ada' })
  await threads.settled(id)
  const stored = JSON.stringify(await threads.events(id))
  const sealed = /"name":"PIN","valueType":"secret","value":"([^"]+)"/.exec(stored)?.[1]
  expect(sealed).toBeDefined()
  const seen = [
    await (await kit.ask('acme', 'GET', `/threads/${id}/events?limit=1000`)).text(),
    await (await kit.ask('acme', 'GET', `/threads/${id}/stream?until=parked`)).text(),
    await (await kit.ask('acme', 'GET', `/threads/${id}/export`)).text(),
    await (await kit.ask('acme', 'GET', `/threads/${id}/env`)).text(),
  ]
  for (const text of seen) {
    expect(text).toContain('shown')
    expect(text).not.toContain('canary-1')
    expect(text).not.toContain(sealed)
  }
  const token = /"type":"approve","token":"?(\{?[^,}]{20})/.exec(stored)?.[1]
  if (token !== undefined) for (const text of seen.slice(0, 2)) expect(text).not.toContain(token)
})
