import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { createClient } from '../../src/client/index.ts'
import { KEYS, startKit, type Kit, type Who } from './http-kit.ts'

let kit: Kit
beforeAll(async () => {
  kit = await startKit()
})
afterAll(() => kit.stop())

function clientOf(who: Who) {
  const fetch: typeof globalThis.fetch = (url, init) => kit.http.fetch(new Request(url, init))
  return createClient({ url: 'http://localhost', apiKey: KEYS[who].key, fetch })
}

async function threadOf(who: Who, ...messages: readonly string[]): Promise<string> {
  const { threads } = clientOf(who)
  const { id } = await threads.create({ agent: 'desk' })
  for (const message of messages) await threads.run(id, message)
  return id
}

test('a row of the list has first words, kinds of tokens, and what waits in its tree', async () => {
  const id = await threadOf('ada', 'Hello there,\n how are you?', 'A refund, please')
  const row = (await clientOf('ada').threads.list({ search: 'how are' })).find(
    (one) => one.id === id,
  )!
  expect(row).toMatchObject({
    title: null,
    firstWords: 'Hello there, how are you?',
    forkedFrom: null,
    waiting: 1,
    tree: { waiting: 1 },
  })
  expect(row.outputTokens).toBeGreaterThan(0)
  expect(row.inputTokens + row.outputTokens).toBe(row.tokens)
  expect(row).not.toHaveProperty('change')
})

test('an agent shows what it is made of; its texts only in a playground, to those who may read logs', async () => {
  const agent = await clientOf('ada').agents.get('desk')
  const [side] = agent.sides
  expect(side).not.toHaveProperty('text')
  const open = await startKit({ http: { playground: true } })
  const shown = async (who: Who) =>
    (await open.json<{ sides: { text?: string }[] }>(who, 'GET', '/agents/desk')).sides[0]!.text
  expect([await shown('ada'), await shown('reader')]).toEqual(['Help.', undefined])
  await open.stop()
  expect(side).toMatchObject({
    prompt: 'desk',
    model: { name: expect.any(String), settings: {} },
    maxSteps: null,
  })
  const byName = new Map(side!.tools.map((tool) => [tool.name, tool]))
  expect(byName.get('refund')).toMatchObject({
    kind: 'tool',
    description: 'Pays money back.',
    parameters: { type: 'object', properties: { amount: { type: 'number' } } },
    risk: 'write_high_risk',
    undo: 'yes',
  })
  expect(byName.get('note')).toMatchObject({ risk: 'write_low_risk', undo: 'none' })
  expect(byName.get('ask')).toMatchObject({ isClientSide: true, risk: 'read_only' })
  expect(byName.get('ask')).not.toHaveProperty('undo')
  expect(byName.get('worker')).toMatchObject({
    kind: 'subagent',
    agent: 'worker',
    isBlocking: true,
    parameters: { properties: { task: { type: 'string' } } },
  })
  expect(agent).toMatchObject({ limits: { maxSessionTurns: null, budget: null }, problems: [] })
  const worker = await clientOf('ada').agents.get('worker')
  expect(worker).toMatchObject({ type: 'dual_ai', limits: { maxSessionTurns: 6 } })
  const vault = await clientOf('ada').agents.get('vault')
  expect(vault.variables).toMatchObject([{ name: 'VAULT_CODE', type: 'secret', required: true }])

  const seen = await clientOf('reader').agents.get('desk')
  expect(seen.sides[0]).not.toHaveProperty('text')
  expect(seen).not.toHaveProperty('problems')
  expect(JSON.stringify(seen)).not.toContain('Help.')
  expect((await kit.ask('ada', 'GET', '/agents/nobody')).status).toBe(404)
})

test('one request for a decision, while it waits and after it was decided', async () => {
  const id = await threadOf('ada', 'note', 'A refund, please')
  const { inbox } = clientOf('ada')
  const [item] = await inbox.list({ rootId: id })
  const waiting = await inbox.get(item!)
  expect(waiting).toMatchObject({
    ...item,
    status: 'waiting',
    sentence: 'desk wants to run refund: Pays money back.',
    arguments: { amount: 5 },
    risk: 'write_high_risk',
    undo: { type: 'tool_call', target: 'note', payload: { text: '5' } },
    path: ['desk'],
    approvedBy: [],
  })
  expect(waiting).not.toHaveProperty('decision')
  await inbox.deny({ ...item!, reason: 'Too much.' })
  await clientOf('ada').threads.settled(id)
  expect(await inbox.get(item!)).toMatchObject({
    status: 'decided',
    arguments: { amount: 5 },
    decision: { type: 'deny', by: 'ada', reason: 'Too much.', at: expect.any(String) },
  })
  // Strangers learn nothing, and other names of the same thread are nothing.
  const path = `/approvals/${id}/${item!.interruptId}`
  for (const who of ['bob', 'rival'] as const)
    expect((await kit.ask(who, 'GET', path)).status).toBe(404)
  expect((await kit.ask('ada', 'GET', `/approvals/${id}/nothing`)).status).toBe(404)
})

test('a request that was approved with changes names the call that ran instead', async () => {
  const id = await threadOf('ada', 'A refund, please')
  const { inbox, threads } = clientOf('ada')
  const [item] = await inbox.list({ rootId: id })
  await inbox.approve({ ...item!, with: { amount: 3 } })
  await threads.settled(id)
  const { decision } = await inbox.get(item!)
  expect(decision).toMatchObject({ type: 'deny', by: 'ada', changedTo: expect.any(String) })
})

test('a request that nobody answered before the end is over', async () => {
  const id = await threadOf('ada', 'A refund, please')
  const { inbox, threads } = clientOf('ada')
  const [item] = await inbox.list({ rootId: id })
  await threads.terminate(id)
  expect(await inbox.get(item!)).toMatchObject({ status: 'over' })
})

test('all children are listed, also those that have ended, with their own threads', async () => {
  const id = await threadOf('ada', 'Please work.', 'Please work.')
  const children = await clientOf('ada').threads.children(id)
  expect(children).toMatchObject([
    {
      name: 'worker',
      blocking: true,
      resumable: false,
      status: 'completed',
      thread: {
        parentId: id,
        agent: 'worker',
        lifecycle: 'terminated',
        updatedAt: expect.any(String),
      },
    },
    { name: 'worker', thread: { rootId: id } },
  ])
  const [first] = children
  expect(first!.thread!.id).toBe(first!.reference)
  // Standard Agents §7.11: a parent can no longer reach them.
  expect(await kit.runtime.threads.children(id)).toEqual([])
})

test('a fork with an edited message goes on from there, and says what the original did', async () => {
  const id = await threadOf('ada', 'Say one', 'note', 'Say three')
  const { threads } = clientOf('ada')
  const messages = await threads.messages(id, { order: 'asc' })
  const edited = messages.find(({ message }) => JSON.stringify(message).includes('"note"'))!
  const fork = await threads.fork(id, { before: edited.id, message: 'Say two' })
  const before = messages[messages.indexOf(edited) - 1]!
  expect(fork).toMatchObject({
    owner: 'ada',
    forkedFrom: { threadId: id, messageId: before.id },
    firstWords: 'Say one',
    runsAgain: {
      modelCalls: 3,
      children: 0,
      calls: [{ toolName: 'note', count: 1, risk: 'write_low_risk' }],
    },
  })
  await threads.settled(fork.id)
  const texts = JSON.stringify(await threads.messages(fork.id, { order: 'asc' }))
  expect(texts).toContain('You said: Say one')
  expect(texts).toContain('You said: Say two')
  expect(texts).not.toContain('noted')
  expect(texts).not.toContain('three')
  // The original is as it was.
  expect(await threads.messages(id, { order: 'asc' })).toEqual(messages)

  const again = await threads.fork(id, { upTo: messages[0]!.id, isContinued: true })
  await threads.settled(again.id)
  expect(await threads.messages(again.id, { order: 'asc' })).toMatchObject([
    { message: { type: 'user' } },
    { message: { type: 'assistant' } },
  ])
  const first = await threads.fork(id, { before: messages[0]!.id, message: 'note' })
  await threads.settled(first.id)
  expect(first).toMatchObject({ forkedFrom: { threadId: id, messageId: null }, firstWords: 'note' })
  const rest = await threads.fork(id)
  // Only a fork that begins with nothing has no last message.
  const last = messages.at(-1)!.id
  expect(rest).toMatchObject({
    lifecycle: 'idle',
    forkedFrom: { threadId: id, messageId: last },
    runsAgain: { modelCalls: 0, calls: [] },
  })

  const branches = await threads.list({ forkedFrom: id })
  expect(new Set(branches.map((one) => one.id))).toEqual(
    new Set([fork.id, again.id, first.id, rest.id]),
  )
  expect(await clientOf('bob').threads.list({ forkedFrom: id })).toEqual([])
  expect(await clientOf('rival').threads.list({ forkedFrom: id })).toEqual([])
})

test('a copy says from the first moment what its history has used', async () => {
  const id = await threadOf('ada', 'Say one')
  const { tokens, outputTokens, inputTokens, cachedTokens, costUsd, tree } =
    await kit.runtime.threads.get(id)
  expect({ tokens, outputTokens, inputTokens }).toEqual({
    tokens: 15,
    outputTokens: 5,
    inputTokens: 10,
  })
  const used = { tokens, outputTokens, inputTokens, cachedTokens, costUsd, tree }
  const imported = await kit.runtime.threads.import(await kit.runtime.threads.export(id))
  const forked = await kit.runtime.threads.fork(id)
  for (const copy of [imported, forked]) {
    expect(await kit.runtime.threads.get(copy.id)).toMatchObject(used)
    // What the copy itself uses is added.
    await kit.runtime.threads.run(copy.id, 'Say two')
    expect(await kit.runtime.threads.get(copy.id)).toMatchObject({ tokens: 30, outputTokens: 10 })
  }
})

test('the path of an event names the agent of that moment, before and after a handoff', async () => {
  const lines = (await kit.runtime.threads.export(await threadOf('ada', 'Say one')))
    .trimEnd()
    .split('\n')
  const [header, ...events] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const isEvent = (line: Record<string, unknown>): boolean => 'seq' in line
  const logged = events.filter(isEvent)
  const handoff = {
    type: 'agent_handoff',
    at: new Date().toISOString(),
    turnId: 't',
    fromAgentId: 'desk/a',
    toAgentId: 'worker/a',
  }
  const seq = logged.length + 1
  const after = { type: 'thread_updated', at: handoff.at, title: 'After' }
  const { id } = await kit.runtime.threads.import(
    [
      { ...header, events: seq + 1 },
      ...logged,
      { seq, event: handoff },
      { seq: seq + 1, event: after },
      ...events.filter((line) => !isEvent(line)),
    ]
      .map((line) => JSON.stringify(line))
      .join('\n'),
    { tenant: 'acme', owner: 'ada' },
  )
  const pathsAfter = async (from: number): Promise<string[]> => {
    const paths: string[] = []
    for await (const { path, event } of clientOf('ada').streamTree(id, { after: String(from) })) {
      paths.push(`${path.join('/')} ${event.type}`)
      if (from + paths.length > seq) break
    }
    return paths
  }
  const paths = await pathsAfter(0)
  expect(paths[0]).toBe('desk thread_created')
  expect(paths.at(-2)).toBe('desk agent_handoff')
  expect(paths.at(-1)).toBe('worker thread_updated')
  expect(await pathsAfter(1)).toEqual(paths.slice(1))
  expect(await pathsAfter(seq)).toEqual(paths.slice(seq))
})

test('a fork that cannot be made changes nothing', async () => {
  const id = await threadOf('ada', 'Say one')
  const path = `/threads/${id}/fork`
  const [message] = await clientOf('ada').threads.messages(id)
  const codes = async (body: object) => {
    const response = await kit.ask('ada', 'POST', path, body)
    return ((await response.json()) as { error: { code: string } }).error.code
  }
  expect(await codes({ before: 'nothing', message: 'x' })).toBe('MESSAGE_NOT_FOUND')
  expect(await codes({ upTo: message!.id, before: message!.id })).toBe('INPUT_INVALID')
  expect(await codes({ message: 'x', send: false })).toBe('INPUT_INVALID')
  expect(await codes({ message: { text: 'x', attachments: ['/no.txt'] } })).toBe('FILE_NOT_FOUND')
  expect(await clientOf('ada').threads.list({ forkedFrom: id })).toEqual([])
  for (const who of ['bob', 'rival'] as const)
    expect((await kit.ask(who, 'POST', path, {})).status).toBe(404)
})

test('a thread can be stopped at once or after its step, and goes on when it is resumed', async () => {
  const { threads } = clientOf('ada')
  const { id } = await threads.create({ agent: 'desk', message: 'hang' })
  await expect.poll(async () => (await threads.get(id)).lifecycle).toBe('running')
  await threads.stop(id, { afterStep: true })
  expect((await threads.get(id)).lifecycle).toBe('running')
  await threads.stop(id)
  expect(await threads.settled(id)).toMatchObject({ outcome: 'stopped' })
  await threads.send(id, 'note')
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed' })
})

test('a thread as one HTML file: everything that was said, nothing that runs', async () => {
  const hostile = '<script>alert(1)</script> <img src=x onerror=alert(2)> a\u202eb " \' &'
  const id = await threadOf('ada', hostile, 'note')
  const html = await clientOf('ada').threads.html(id)
  expect(html).toContain('&#60;script&#62;alert(1)&#60;/script&#62;')
  expect(html).toContain('a\\u{202e}b')
  expect(html).toContain('note (success)')
  expect(html).not.toMatch(/<(script|img|iframe|link|a)\b/i)
  expect(html).not.toMatch(/https?:\/\//)
  expect(html).not.toContain('\u202e')
  expect(html).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
  const response = await kit.ask('ada', 'GET', `/threads/${id}/export?format=html`)
  expect(response.headers.get('content-disposition')).toBe('attachment; filename="thread.html"')
  expect((await kit.ask('bob', 'GET', `/threads/${id}/export?format=html`)).status).toBe(404)
})

test('a message may choose another model and settings for its run, where the server allows it', async () => {
  const open = await startKit({ http: { playground: true } })
  const { threads } = open.runtime
  const { name: model } = (
    await open.json<{ sides: { model: { name: string } }[] }>('ada', 'GET', '/agents/worker')
  ).sides[0]!.model
  const { id } = await open.json<{ id: string }>('ada', 'POST', '/threads', {
    agent: 'desk',
    message: { text: 'Hello', model, settings: { temperature: 0.5 } },
  })
  await threads.settled(id)
  await threads.run(id, 'Hello again')
  const logs = await Promise.all(
    (await threads.logs(id)).map(({ logId }) => threads.log(id, logId)),
  )
  expect(logs.map((log) => log.params['temperature'])).toEqual([0.5, undefined])
  const events = JSON.stringify(await threads.events(id))
  expect(events).toContain('"skein:run":{"model":')
  const refused = async (message: object, of = open) => {
    const response = await of.ask('ada', 'POST', `/threads/${id}/messages`, message)
    return ((await response.json()) as { error: { code: string } }).error.code
  }
  expect(await refused({ text: 'x', model: 'nothing-like-this' })).toBe('INPUT_INVALID')
  const forged = { 'skein:run': { call: { toolName: 'refund', arguments: { amount: 9 } } } }
  expect(await refused({ text: 'x', metadata: forged })).toBe('INPUT_INVALID')
  expect(await refused({ text: 'x', call: { toolName: 'note', arguments: {} } })).toBe(
    'INPUT_INVALID',
  )
  await open.stop()

  const own = await threadOf('ada', 'Hello')
  for (const message of [
    { text: 'x', model },
    { text: 'x', settings: {} },
  ]) {
    const response = await kit.ask('ada', 'POST', `/threads/${own}/messages`, message)
    expect([response.status, await response.text()]).toEqual([
      403,
      expect.stringContaining('PLAYGROUND_OFF'),
    ])
  }
})

test('one tool tried alone passes the gate: what is low runs, what is high waits for an approval', async () => {
  const open = await startKit({ http: { playground: true } })
  const fetch: typeof globalThis.fetch = (url, init) => open.http.fetch(new Request(url, init))
  const { agents, inbox, threads } = createClient({
    url: 'http://localhost',
    apiKey: KEYS.ada.key,
    fetch,
  })
  const low = await agents.tryTool('desk', 'note', { text: 'kept' })
  expect(low).toMatchObject({ outcome: 'success', result: 'kept', waiting: [] })
  expect(low.durationMs).toBeGreaterThanOrEqual(0)
  expect(await threads.get(low.threadId)).toMatchObject({ owner: 'ada', tags: ['try'], tokens: 0 })
  expect(await threads.logs(low.threadId)).toEqual([])

  const wrong = await agents.tryTool('desk', 'note', { text: 7 })
  expect(wrong.outcome).not.toBe('success')

  const high = await agents.tryTool('desk', 'refund', { amount: 5 })
  expect(high).toMatchObject({
    outcome: 'waiting',
    waiting: [{ toolName: 'refund', arguments: { amount: 5 }, threadId: high.threadId }],
  })
  expect(high).not.toHaveProperty('result')
  await inbox.approve(high.waiting[0]!)
  await threads.settled(high.threadId)
  const { items } = await threads.view(high.threadId)
  expect(items.findLast(({ type }) => type === 'call')).toMatchObject({
    state: 'success',
    result: 'Paid 5.',
  })
  expect((await threads.audit(high.threadId)).lines.length).toBeGreaterThan(0)
  // The run is over, and no model was asked.
  expect(await threads.logs(high.threadId)).toEqual([])
  // The next message is answered as usual.
  expect(await threads.run(high.threadId, 'Hello')).toMatchObject({ outcome: 'completed' })

  const status = async (path: string, who: Who = 'ada') =>
    (await open.ask(who, 'POST', `/agents/${path}/try`, { arguments: {} })).status
  expect(await status('desk/tools/nothing')).toBe(404)
  expect(await status('desk/tools/worker')).toBe(404) // an agent
  expect(await status('desk/tools/ask')).toBe(404) // runs at the client
  expect(await status('nobody/tools/note')).toBe(404)
  expect(await status('desk/tools/note', 'reader')).toBe(403)
  expect((await open.ask('bob', 'GET', `/threads/${high.threadId}`)).status).toBe(404)
  await open.stop()
  const off = await kit.ask('ada', 'POST', '/agents/desk/tools/note/try', { arguments: {} })
  expect([off.status, await off.text()]).toEqual([403, expect.stringContaining('PLAYGROUND_OFF')])
})

test('a log with long results is read without them, and each event whole by itself', async () => {
  const text = 'word '.repeat(2000)
  const read = defineTool({
    name: 'read',
    description: 'Reads.',
    args: z.object({ isText: z.boolean() }),
    risk: 'read_only',
    execute: (_, { isText }) => (isText ? text : { lines: [text] }),
  })
  const reader = defineAgent({
    name: 'reader',
    sideA: {
      prompt: definePrompt({
        name: 'reader',
        prompt: 'Read.',
        model: scripted(({ messages }) =>
          messages.at(-1)?.type === 'user'
            ? [calls('read', { isText: true }), calls('read', { isText: false })]
            : says('Read.'),
        ),
        tools: [read],
      }),
    },
  })
  const own = await startKit({ runtime: { agents: [reader] } })
  const fetch: typeof globalThis.fetch = (url, init) => own.http.fetch(new Request(url, init))
  const { threads } = createClient({ url: 'http://localhost', apiKey: KEYS.acme.key, fetch })
  const { id } = await threads.create({ agent: 'reader' })
  await threads.run(id, 'Go.')
  const whole = await threads.events(id, { limit: 1000 })
  expect(whole.some((one) => 'isCut' in one)).toBe(false)
  const short = await threads.events(id, { limit: 1000, maxResultChars: 1000 })
  const cut = short.filter(({ isCut }) => isCut)
  expect(JSON.stringify(short).length).toBeLessThan(JSON.stringify(whole).length - 15_000)
  const results = cut.flatMap(({ event }) =>
    event.type === 'tool_execution_end' ? [event.result] : [],
  )
  expect(results).toEqual([
    `${text.slice(0, 1000)}… [${text.length - 1000} more characters]`,
    `${JSON.stringify({ lines: [text] }).slice(0, 1000)}… [${JSON.stringify({ lines: [text] }).length - 1000} more characters]`,
  ])
  // What is not a result stays as it is, and a cut event comes whole when it is asked for alone.
  for (const [index, { seq, event, isCut }] of short.entries())
    if (isCut)
      expect(await threads.events(id, { after: seq - 1, limit: 1 })).toEqual([whole[index]])
    else expect(event).toEqual(whole[index]!.event)
  await own.stop()
})
