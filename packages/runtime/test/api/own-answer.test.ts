import { beforeEach, expect, test } from 'vitest'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import type { SessionResult } from '../../src/contract/session-result.ts'
import { definitions } from './definitions.ts'
import { createHarness, START, type Harness } from './harness.ts'

// `threads.run` looks at the thread after a commit. Here several sessions are one commit, as for a reader that
// looks late: the answer to the own message is found all the same.

const at = new Date(START).toISOString()
let harness: Harness
let id: string

beforeEach(async () => {
  harness = await createHarness({ definitions })
  id = (await harness.threads.create({ agent: 'support' })).id
})

/** Runs a message; resolves to the pending result when the message is in the queue. */
async function begin(messageId: string): Promise<{ readonly result: Promise<SessionResult> }> {
  const result = harness.threads.run(id, { text: messageId, messageId })
  await harness.threads.send(id, { text: messageId, messageId })
  return { result }
}

const start = (sessionId: string): RuntimeEvent => ({
  type: 'session_start',
  at,
  sessionId,
  agent: 'support',
})

function taken(queueId: string): RuntimeEvent {
  const content = [{ type: 'text', text: queueId } as const]
  const message = { id: queueId, type: 'user', timestamp: at, content } as const
  return { type: 'message_added', at, turnId: queueId, side: 'b', queueId, message }
}

function said(text: string): RuntimeEvent {
  const content = [{ type: 'text', text } as const]
  const message = { id: text, type: 'assistant', timestamp: at, content } as const
  return { type: 'message_added', at, turnId: 't', side: 'a', message }
}

type End = Extract<RuntimeEvent, { type: 'session_end' }>
const end = (sessionId: string, fields: Partial<End> = {}): RuntimeEvent => {
  const usual = { outcome: 'completed', reason: 'response', message: `re: ${sessionId}` } as const
  return { type: 'session_end', at, sessionId, ...usual, ...fields }
}

test('run answers with its own session, although a later one has ended too', async () => {
  const [a, b, c] = [await begin('a'), await begin('b'), await begin('c')]
  const first = end('a', { data: 1, attachments: ['/a.txt'] })
  const second = end('b', { outcome: 'failed', reason: 'limit', hint: 'Less.' })
  const sessions = [start('a'), taken('a'), first, start('b'), taken('b'), second]
  await harness.append(id, ...sessions, start('c'), taken('c'), end('c'))
  expect(await a.result).toMatchObject({
    outcome: 'completed',
    text: 're: a',
    data: 1,
    attachments: ['/a.txt'],
  })
  expect(await b.result).toMatchObject({ outcome: 'failed', reason: 'limit', hint: 'Less.' })
  expect(await c.result).toMatchObject({ text: 're: c', attachments: [] })
  expect(await c.result).not.toHaveProperty('hint')
})

test('run answers although the next session has begun in the same commit', async () => {
  const [a, b] = [await begin('a'), await begin('b')]
  await harness.append(id, start('a'), taken('a'), end('a'), start('b'), taken('b'))
  expect(await a.result).toMatchObject({ text: 're: a' })
  await harness.append(id, end('b'))
  expect(await b.result).toMatchObject({ text: 're: b' })
})

test('two messages of one session have its answer', async () => {
  const [a, b, c] = [await begin('a'), await begin('b'), await begin('c')]
  const both = [start('ab'), taken('a'), taken('b'), end('ab')]
  await harness.append(id, ...both, start('c'), taken('c'), end('c'))
  expect((await a.result).text).toBe('re: ab')
  expect((await b.result).text).toBe('re: ab')
  expect((await c.result).text).toBe('re: c')
})

test('SA-35 the session after a handoff is the one that answers', async () => {
  const [a, b] = [await begin('a'), await begin('b')]
  const handoff = end('a', { reason: 'handoff', message: undefined })
  await harness.append(id, start('a'), taken('a'), handoff, start('a2'))
  await harness.append(id, end('a2'), start('b'), taken('b'), end('b'))
  expect(await a.result).toMatchObject({ reason: 'response', text: 're: a2' })
  expect((await b.result).text).toBe('re: b')
})

test('the text of a session that was stopped is what it said itself', async () => {
  const [a, b] = [await begin('a'), await begin('b')]
  const stopped = end('a', { outcome: 'stopped', reason: 'stopped', message: undefined })
  const half = [start('a'), taken('a'), said('Half of a'), stopped]
  await harness.append(id, ...half, start('b'), taken('b'), said('All of b'))
  expect(await a.result).toMatchObject({ outcome: 'stopped', text: 'Half of a' })
  await harness.append(id, end('b'))
  expect((await b.result).text).toBe('re: b')
  // The same message again: it is not sent again, and its answer is now in an earlier session.
  expect(await harness.threads.run(id, { text: 'a', messageId: 'a' })).toMatchObject({
    outcome: 'stopped',
    text: 'Half of a',
  })
})

test('an answer that was given stays one when the thread fails or is terminated later', async () => {
  const [a, b] = [await begin('a'), await begin('b')]
  const append = [start('a'), taken('a'), end('a'), start('b'), taken('b')]
  const threads = [{ id, append, head: { lifecycle: 'failed' } as const }]
  await harness.environment.commit({ point: 'test', threads })
  expect(await a.result).toMatchObject({ outcome: 'completed', text: 're: a' })
  expect(await b.result).toMatchObject({ outcome: 'failed', reason: 'drain_failed' })

  id = (await harness.threads.create({ agent: 'support' })).id
  const [c, d] = [await begin('c'), await begin('d')]
  const over: RuntimeEvent = { type: 'thread_terminated', at }
  await harness.append(id, start('c'), taken('c'), end('c'), start('d'), taken('d'), over)
  expect(await c.result).toMatchObject({ outcome: 'completed', text: 're: c' })
  expect(await d.result).toMatchObject({ outcome: 'terminated' })
})
