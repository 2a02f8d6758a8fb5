import { build } from 'esbuild'
import { afterEach, expect, test } from 'vitest'
import { createClient } from '@skein/server/client'
import { threadView, ViewFold, type ThreadView } from '@skein/runtime/view'
import { KEYS, startKit, type Kit } from '../http/http-kit.ts'

const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

async function start(): Promise<{ kit: Kit; id: string; view: () => Promise<ThreadView> }> {
  const kit = await startKit()
  kits.push(kit)
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme', title: 'Mine' })
  return { kit, id, view: async () => threadView(await kit.runtime.threads.events(id)) }
}

test('what was said, by whom, and what it cost', async () => {
  const { kit, id, view } = await start()
  await kit.runtime.threads.run(id, { text: 'Hello', userId: 'ada' })
  const seen = await view()
  expect(seen).toMatchObject({
    threadId: id,
    agent: 'desk',
    title: 'Mine',
    status: 'idle',
    items: [
      { type: 'message', from: 'user', userId: 'ada', text: 'Hello', media: [], attachments: [] },
      { type: 'message', from: 'agent', agentId: 'desk/a', text: expect.stringContaining('Hello') },
    ],
    waiting: [],
    queued: [],
    children: [],
    failures: [],
    usage: { inputTokens: 10, outputTokens: 5, requests: 1, turns: 1 },
    result: { outcome: 'completed' },
  })
  expect(seen.seq).toBe((await kit.runtime.threads.get(id)).seq)
})

test('a call that waits for a person says so and since when; after the decision it has its result', async () => {
  const { kit, id, view } = await start()
  await kit.runtime.threads.run(id, 'A refund, please.')
  const before = await view()
  expect(before).toMatchObject({
    status: 'waiting',
    items: [{ type: 'message' }, { type: 'call', toolName: 'refund', state: 'waiting' }],
    waiting: [{ for: 'person', toolName: 'refund', since: expect.any(String) }],
  })
  const [waiting] = await kit.runtime.inbox.list({ tenant: 'acme' })
  expect(before.waiting[0]).toMatchObject({
    interruptId: waiting!.interruptId,
    since: waiting!.openedAt,
  })
  await kit.runtime.inbox.approve({ ...waiting!, by: 'ada' })
  await kit.runtime.threads.settled(id)
  expect(await view()).toMatchObject({
    status: 'idle',
    waiting: [],
    items: [
      { type: 'message' },
      { type: 'call', state: 'success', result: 'Paid 5.', endedAt: expect.any(String) },
      { type: 'message', from: 'agent', text: 'That is done.' },
    ],
  })
})

test('a child is shown on the call that made it; reports that only models see are not shown', async () => {
  const { kit, id, view } = await start()
  await kit.runtime.threads.run(id, 'Please work.')
  const { items, children } = await view()
  expect(children).toMatchObject([{ name: 'worker', createdAt: expect.any(String) }])
  expect(items.filter(({ type }) => type === 'call')).toMatchObject([
    { toolName: 'worker', childId: children[0]!.threadId },
  ])
})

test('time travel: the view up to an event is the view as it was then', async () => {
  const { kit, id } = await start()
  const seen: ThreadView[] = []
  const fold = new ViewFold()
  await kit.runtime.threads.run(id, 'Hello')
  await kit.runtime.threads.run(id, 'A refund, please.')
  const events = await kit.runtime.threads.events(id)
  for (const { seq, event } of events) {
    fold.push(event, seq)
    seen.push(fold.view)
  }
  for (const [index, view] of seen.entries())
    expect(threadView(events, { upTo: index + 1 })).toEqual(view)
  const client = createClient({
    url: 'http://localhost',
    apiKey: KEYS.acme.key,
    fetch: (input, init) => kit.http.fetch(new Request(input, init)),
  })
  const asJson = (view: ThreadView): unknown => JSON.parse(JSON.stringify(view))
  for (const upTo of [1, 5, events.length])
    expect(await client.threads.view(id, { upTo })).toEqual(asJson(seen[upTo - 1]!))
  const { tree } = await client.threads.get(id)
  expect(await client.threads.view(id)).toEqual({ ...(asJson(seen.at(-1)!) as object), tree })
})

test('a stream folds to the same view as the log, and shows what is being said', async () => {
  const { kit, id, view } = await start()
  const fold = new ViewFold()
  const drafts = new Set<string>()
  await kit.runtime.threads.send(id, 'Hello')
  for await (const { id: number, event } of kit.runtime.subscribe(id, { untilParked: true })) {
    fold.push(event, Math.trunc(Number(number)))
    if (fold.view.draft !== undefined) drafts.add(fold.view.draft)
  }
  expect([...drafts].at(-1)).toContain('You said: Hello.')
  expect(fold.view).toEqual(await view())
})

test('a step or a turn that begins again begins with an empty draft', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const turn = { at, turnId: 't' }
  const fold = new ViewFold()
  const delta = (text: string): void =>
    fold.push({ type: 'text_delta', ...turn, blockId: 'b', text }, 0)
  fold.push({ type: 'turn_start', ...turn, agentId: 'desk/a' }, 1)
  fold.push({ type: 'step_start', ...turn, stepId: 's' }, 2)
  delta('Half a sen')
  // The process died here: another one takes the step up again.
  fold.push({ type: 'step_start', ...turn, stepId: 's' }, 3)
  expect(fold.view.draft).toBeUndefined()
  delta('A whole ')
  delta('sentence.')
  expect(fold.view.draft).toBe('A whole sentence.')
  fold.push({ type: 'turn_start', at, turnId: 'u', agentId: 'desk/a' }, 4)
  expect(fold.view.draft).toBeUndefined()
})

test('a message that waits is shown as queued until the thread reads it; a stop is told', async () => {
  const { kit, id, view } = await start()
  await kit.runtime.threads.send(id, 'hang')
  for await (const { event } of kit.runtime.subscribe(id)) if (event.type === 'text_delta') break
  await kit.runtime.threads.send(id, 'And this')
  expect(await view()).toMatchObject({ status: 'running', queued: [{ text: 'And this' }] })
  await kit.runtime.threads.terminate(id)
  expect(await view()).toMatchObject({ status: 'terminated', queued: [], waiting: [] })
})

test('the view of a long thread goes on from the last one, for every reader, until its log is replaced', async () => {
  const { kit, id, view } = await start()
  const { threads } = kit.runtime
  for (let value = 0; value < 600; value++) await threads.values.set(id, `key ${value % 7}`, value)
  const client = createClient({
    url: 'http://localhost',
    apiKey: KEYS.acme.key,
    fetch: (input, init) => kit.http.fetch(new Request(input, init)),
  })
  const reads: (number | undefined)[] = []
  const { events } = threads
  Object.assign(threads, {
    events: (...asked: Parameters<typeof events>) => {
      reads.push(asked[1]?.after)
      return events(...asked)
    },
  })
  for (const text of ['One', 'Two']) {
    const shown = await Promise.all([client.threads.view(id), client.threads.view(id)])
    const { tree } = await threads.get(id)
    for (const one of shown)
      expect(one).toEqual({ ...JSON.parse(JSON.stringify(await view())), tree })
    await threads.run(id, text)
  }
  reads.length = 0
  await client.threads.view(id)
  expect(reads).toEqual([expect.any(Number)])
  expect(reads[0]).toBeGreaterThan(600)
  await threads.erase(id)
  const erased = await client.threads.view(id)
  expect(erased).toMatchObject({ ...JSON.parse(JSON.stringify(await view())), status: 'erased' })
  expect(JSON.stringify(erased)).not.toContain('One')
})

test('the view runs in a browser: no built-in of Node, no code of the server', async () => {
  const { metafile, outputFiles } = await build({
    stdin: { contents: `export * from '@skein/runtime/view'`, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    conditions: ['@skein/source'],
  })
  expect(
    Object.keys(metafile.inputs).filter((file) => /\/(http|store|kernel|api)\//.test(file)),
  ).toEqual([])
  expect(outputFiles[0]!.contents.length).toBeLessThan(12_000)
})
