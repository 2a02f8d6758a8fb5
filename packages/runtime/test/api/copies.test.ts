import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { validateThread } from '@skein/threads'
import { EVENT_VERSION, type RuntimeEvent } from '../../src/contract/event.ts'
import { definitions } from './definitions.ts'
import { childCreated, exchange, waitingSession } from './events.ts'
import { coded, createHarness, START, type Harness } from './harness.ts'

const at = new Date(START).toISOString()
let harness: Harness
let id: string

beforeEach(async () => {
  harness = await createHarness({ definitions })
  id = (
    await harness.threads.create({
      agent: 'support',
      owner: 'ann',
      title: 'One',
      tags: ['x'],
      secrets: { TOKEN: 'hunter2' },
      env: { REGION: 'eu' },
    })
  ).id
  await harness.threads.files.write(id, '/a.txt', Buffer.from('file'))
  await harness.append(id, ...exchange('one'), ...exchange('two'))
})

const log = async (threadId: string): Promise<RuntimeEvent[]> =>
  (await harness.threads.events(threadId)).map(({ event }) => event)

const texts = async (threadId: string): Promise<string[]> =>
  (await harness.threads.messages(threadId))
    .filter(({ message }) => message.type !== 'tool_result')
    .map(({ message }) => message.text)

const stateOf = async (threadId: string) => (await harness.folds.load(threadId))!.state

/** Everything that could still happen in the thread: a queue, an approval, a child, an effect, a request. */
async function leaveOpen(): Promise<void> {
  const pending: RuntimeEvent = {
    type: 'variables_requested',
    at,
    requestId: 'r',
    required: [],
    missing: [],
    expiresAt: at,
    relation: 'worker',
    toolName: 'worker',
    arguments: {},
  }
  await harness.append(id, ...waitingSession(), childCreated('child'), pending)
  await harness.threads.send(id, 'waits')
  await harness.threads.effects.schedule(id, 'clean', null, 5000)
}

async function expectAtRest(threadId: string): Promise<void> {
  const state = await stateOf(threadId)
  expect(state).toMatchObject({ session: undefined, queue: [], parent: undefined, depth: 0 })
  expect([state.interrupts.size, state.effects.size]).toEqual([0, 0])
  expect([...state.children.values()].every(({ lifecycle }) => lifecycle === 'terminated')).toBe(
    true,
  )
  expect([...state.variables.values()].every(({ error }) => error !== undefined)).toBe(true)
  expect(state.entries.flatMap(({ calls }) => calls).every(({ outcome }) => outcome)).toBe(true)
  expect(await harness.threads.get(threadId)).toMatchObject({
    wakeAt: null,
    parentId: null,
    rootId: threadId,
    lifecycle: 'idle',
  })
}

describe('export and import', () => {
  test('what comes back is the same thread under a new id, without secrets', async () => {
    const lines = await harness.threads.export(id)
    expect(lines).not.toContain('hunter2')
    const sealed = (await stateOf(id)).env.get('TOKEN')!.value
    expect(lines).not.toContain(sealed)
    const copy = await harness.threads.import(lines, { tenant: 'other', owner: 'bob' })
    expect(copy).toMatchObject({
      tenant: 'other',
      owner: 'bob',
      title: 'One',
      tags: ['x'],
      agent: 'support',
    })
    expect(copy.id).not.toBe(id)
    expect(await texts(copy.id)).toEqual(await texts(id))
    expect((await harness.threads.files.read(copy.id, '/a.txt')).bytes).toEqual(
      new Uint8Array(Buffer.from('file')),
    )
    expect(await harness.threads.env.list(copy.id)).toEqual([
      { name: 'REGION', type: 'text', value: 'eu' },
    ])
    await expectAtRest(copy.id)
  })

  test('nothing that was open goes on in the copy, and an ended thread begins to live again', async () => {
    await leaveOpen()
    await harness.threads.terminate(id)
    const copy = await harness.threads.import(await harness.threads.export(id))
    await expectAtRest(copy.id)
    await harness.threads.send(copy.id, 'still here')
  })

  test('a line that was changed, lost or added is refused with its number, and nothing is stored', async () => {
    const lines = (await harness.threads.export(id)).trimEnd().split('\n')
    const before = (await harness.threads.list()).length
    const refused = async (changed: readonly string[], line: number) => {
      const promise = harness.threads.import(changed.join('\n'))
      await expect(promise).rejects.toEqual(coded('INPUT_INVALID'))
      await expect(promise).rejects.toThrow(`Line ${line} `)
    }
    await refused(lines.with(4, 'nonsense'), 5)
    await refused(lines.with(3, '[]'), 4)
    await refused(lines.with(3, lines[3]!.replace('"seq":3', '"seq":9')), 4)
    await refused(lines.with(3, lines[3]!.replace('env_set', 'env_sot')), 4)
    await refused(lines.with(6, lines[6]!.replace(/"at":"[^"]*"/, '"at":"soon"')), 7)
    await refused(lines.with(7, lines[7]!.replace('"id":"one-u",', '')), 8)
    await refused(lines.with(-1, lines.at(-1)!.replace('ZmlsZQ', 'ZmlsWQ')), lines.length)
    await refused(lines.toSpliced(8, 1), 9)
    await refused(lines.slice(0, -1), 1)
    const [mine, newer] = [EVENT_VERSION, EVENT_VERSION + 1].map((one) => `"version":${one}`)
    await refused(lines.with(0, lines[0]!.replace(mine!, newer!)), 1)
    await refused(lines.slice(1), 1)
    await refused([''], 1)
    expect(await harness.threads.list()).toHaveLength(before)
  })

  test('a hash without its content opens no file of others', async () => {
    const lines = (await harness.threads.export(id)).trimEnd().split('\n')
    const header = lines[0]!.replace('"blobs":1', '"blobs":0')
    await expect(
      harness.threads.import([header, ...lines.slice(1, -1)].join('\n')),
    ).rejects.toEqual(coded('INPUT_INVALID'))
  })

  test('an agent that is not known here is named', async () => {
    const lines = (await harness.threads.export(id)).replaceAll(
      '"agent":"support"',
      '"agent":"gone"',
    )
    await expect(harness.threads.import(lines)).rejects.toEqual(coded('AGENT_NOT_FOUND'))
  })

  test('random damage never gets in as something else', async () => {
    const lines = await harness.threads.export(id)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(lines.length - 1),
        fc.constantFrom('x', '{', '"', '0', '\n', ''),
        async (place, put) => {
          const damaged = lines.slice(0, place) + put + lines.slice(place + 1)
          const result = await harness.threads.import(damaged).catch((error: unknown) => error)
          if (result instanceof Error)
            expect(['INPUT_INVALID', 'AGENT_NOT_FOUND']).toContain(
              (result as Error & { code: string }).code,
            )
          else await stateOf((result as { id: string }).id)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('fork', () => {
  test('has the history up to and with a message, with the results of its calls', async () => {
    const fork = await harness.threads.fork(id, { upTo: 'one-z', owner: 'bob', title: 'Fork' })
    expect(fork).toMatchObject({ owner: 'bob', title: 'Fork', tenant: 'default', tags: ['x'] })
    expect(await texts(fork.id)).toEqual(['ask one', 'One moment.', 'answer one'])
    await expectAtRest(fork.id)
    expect(await log(fork.id)).toContainEqual(
      expect.objectContaining({ type: 'session_end', reason: 'response' }),
    )
    const middle = await harness.threads.fork(id, { upTo: 'two-a' })
    expect((await harness.threads.messages(middle.id)).map((message) => message.id)).toEqual([
      'one-u',
      'one-a',
      'one-a.results',
      'one-z',
      'two-u',
      'two-a',
      'two-a.results',
    ])
    expect((await log(middle.id)).at(-1)).toMatchObject({ type: 'session_end', reason: 'copied' })
    await expectAtRest(middle.id)
    expect(await texts((await harness.threads.fork(id)).id)).toEqual(await texts(id))
  })

  test('nothing that is open there is open here, and secrets open here', async () => {
    await leaveOpen()
    const before = await log(id)
    const fork = await harness.threads.fork(id)
    await expectAtRest(fork.id)
    const entry = (await stateOf(fork.id)).env.get('TOKEN')!
    expect(harness.environment.vault.open(entry.value, `${fork.id}/TOKEN`)).toBe('hunter2')
    expect(await log(id)).toEqual(before)
    expect((await harness.threads.folded(fork.id)).metadata).toMatchObject({
      forked_from: { thread_id: id },
    })
    await harness.threads.remove(id)
    expect((await harness.threads.files.read(fork.id, '/a.txt')).bytes).toEqual(
      new Uint8Array(Buffer.from('file')),
    )
  })

  test('a message that was deleted or changed later is so in a fork of the history before', async () => {
    await harness.threads.deleteMessage(id, 'one-z')
    await harness.threads.updateMessage(id, 'one-u', 'ask again')
    await harness.threads.deleteMessage(id, 'two-z')
    for (const place of [{ upTo: 'one-z' }, { upTo: 'one-a' }, { before: 'two-u' }]) {
      const fork = await harness.threads.fork(id, place)
      expect(await texts(fork.id)).toEqual(['ask again', 'One moment.'])
      expect(JSON.stringify(await harness.threads.document(fork.id))).not.toContain('answer one')
      // What was changed in messages that the fork does not have is not in its log.
      expect(JSON.stringify(await log(fork.id))).not.toContain('two-z')
      await expectAtRest(fork.id)
    }
    const whole = await harness.threads.fork(id)
    expect(await texts(whole.id)).toEqual(await texts(id))
    const removed = (await log(whole.id)).filter(({ type }) => type === 'message_removed')
    expect(removed).toHaveLength(2)
  })

  test('a call that was approved later with other arguments is settled in a fork', async () => {
    await harness.append(id, ...waitingSession())
    await harness.threads.send(id, 'later') // the fork ends before it
    const other = { toolCallId: 'c2', toolName: 'pay', arguments: { amount: 6 } }
    const toolCalls = [{ toolCallId: 'c1', toolName: 'pay', arguments: { amount: 5 } }, other]
    const content = [{ type: 'text', text: 'I will pay.' } as const]
    const changed = { id: 'm1', type: 'assistant', timestamp: at, content, toolCalls } as const
    await harness.append(
      id,
      { type: 'message_updated', at, messageId: 'm1', message: changed },
      { type: 'call_changed', at, turnId: 't1', toolCallId: 'c1', changedTo: 'c2' },
    )
    const fork = await harness.threads.fork(id, { upTo: 'm1' })
    await expectAtRest(fork.id)
    const { calls } = (await stateOf(fork.id)).entries.at(-1)!
    expect(calls.map(({ call, outcome }) => [call.toolCallId, outcome !== undefined])).toEqual([
      ['c1', true],
      ['c2', true],
    ])
  })

  test('an unknown message and an erased thread are refused', async () => {
    await expect(harness.threads.fork(id, { upTo: 'none' })).rejects.toEqual(
      coded('MESSAGE_NOT_FOUND'),
    )
    await harness.threads.erase(id)
    await expect(harness.threads.fork(id)).rejects.toEqual(coded('INPUT_INVALID'))
  })
})

describe('documents, logs and cost', () => {
  test('the document is valid and holds the history, not the machinery', async () => {
    await leaveOpen()
    const document = await harness.threads.document(id)
    expect(validateThread(document)).toMatchObject({ valid: true })
    const text = JSON.stringify(document)
    expect(text).toContain('answer two')
    expect(text).not.toContain('env_set')
    expect(text).not.toContain('message_queued')
    expect(Object.keys(document.agents)).toEqual(['support/a'])
  })

  test('cost is summed over the tree, by model and by thread', async () => {
    const asked = (logId: string, model: string): RuntimeEvent => ({
      type: 'model_requested',
      at,
      logId,
      stepId: 's',
      turnId: 't',
      attempt: 1,
      side: 'a',
      prompt: 'main',
      provider: 'p',
      model,
      frame: 'f',
      adds: [],
    })
    const answered = (logId: string, tokens: number, costUsd: number): RuntimeEvent => ({
      type: 'model_answered',
      at,
      logId,
      durationMs: 5,
      usage: { input_tokens: tokens, output_tokens: 1 },
      costUsd,
    })
    await harness.append(id, asked('l1', 'm'), answered('l1', 10, 0.5), asked('l2', 'n'))
    const create = {
      tenant: 'default',
      owner: 'ann',
      agent: 'worker',
      parentId: id,
      rootId: id,
      title: null,
      tags: [],
      clientId: null,
      createdAt: START,
    }
    const created: RuntimeEvent = {
      type: 'thread_created',
      at,
      threadId: 'child',
      agent: 'worker',
      version: 1,
      depth: 1,
    }
    await harness.store.commit({
      point: 'test',
      threads: [
        { id: 'child', create, append: [created, asked('l3', 'm'), answered('l3', 20, 0.25)] },
      ],
    })
    expect(await harness.threads.cost(id)).toEqual({
      threadId: id,
      tokens: 32,
      costUsd: 0.75,
      byModel: {
        'p/m': { tokens: 32, costUsd: 0.75, calls: 2 },
        'p/n': { tokens: 0, costUsd: 0, calls: 1 },
      },
      byThread: {
        [id]: { agent: 'support', tokens: 11, costUsd: 0.5 },
        child: { agent: 'worker', tokens: 21, costUsd: 0.25 },
      },
    })
    expect(await harness.threads.logs(id)).toMatchObject([
      { logId: 'l1', durationMs: 5 },
      { logId: 'l2' },
    ])
    await expect(harness.threads.log(id, 'none')).rejects.toEqual(coded('LOG_NOT_FOUND'))
  })
})
