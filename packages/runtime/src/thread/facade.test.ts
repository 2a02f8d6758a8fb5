import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { AssistantMessage, messageToJSON, ToolResultMessage, UserMessage } from '@skein/ai'
import { manualClock, sequentialIds, sha256Hex, type JsonValue } from '@skein/base'
import type { Registry, ResolvedAgent } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import { foldKernel } from '../state/fold.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { ThreadHead } from '../store/head.ts'
import { aesVault } from '../secrets/vault.ts'
import { createEnvReader } from './env.ts'
import { createThreadFacade, type ThreadFacade, type ThreadFacadeOptions } from './facade.ts'

const threadId = 'thread-1'
const at = '2026-01-01T00:00:00.000Z'
const code = (word: string) => expect.objectContaining({ code: word }) as Error

let store = memoryStore()
let log: RuntimeEvent[] = []
let shown: RuntimeEvent[] = []

beforeEach(() => {
  store = memoryStore()
  shown = []
  log = [
    {
      type: 'thread_created',
      at,
      threadId,
      agent: 'helper',
      version: 1,
      depth: 1,
      arguments: { topic: 'x' },
      parent: {
        threadId: 'parent-1',
        relation: 'helper',
        isBlocking: false,
        isResumable: true,
        communication: 'explicit',
        receives: 'a',
      },
    },
    added('m1', 'b', new UserMessage('hello', { id: 'm1', timestamp: new Date(at) })),
    added('m2', 'a', new AssistantMessage('hi', undefined, { id: 'm2', timestamp: new Date(at) })),
  ]
})

describe('messages', () => {
  test('a text becomes a user message with an id and time of the environment', () => {
    const { state, takeChanges } = open()
    const id = state.queueMessage({ content: 'go', isSilent: true, metadata: { a: 1 } })
    expect(takeChanges().events).toEqual([
      {
        type: 'message_queued',
        at: '2026-01-02T00:00:00.000Z',
        queueId: id,
        role: 'user',
        isSilent: true,
        metadata: { a: 1 },
        message: {
          id,
          type: 'user',
          content: [{ type: 'text', text: 'go' }],
          timestamp: '2026-01-02T00:00:00.000Z',
        },
      },
    ])
    expect(id).toMatch(/^id\d+$/)
  })

  test('an injected message is in the history at once, on the side that its role says', () => {
    const { state, takeChanges } = open()
    const fromUser = state.injectMessage({ content: 'u' })
    const fromAgent = state.injectMessage({ content: 'a', role: 'assistant' })
    expect(state.getMessage(fromUser)).toMatchObject({ side: 'b', isSilent: false })
    expect(state.getMessage(fromAgent)).toMatchObject({ side: 'a' })
    expect(state.getMessages().map(({ id }) => id)).toEqual(['m1', 'm2', fromUser, fromAgent])
    const { events } = takeChanges()
    expect(events).toMatchObject([
      { type: 'message_added', side: 'b' },
      { type: 'message_added', side: 'a' },
    ])
    expect(after(events).entries.at(-1)).toMatchObject({ side: 'a', message: { id: fromAgent } })
  })

  test('a queued message is not in the history yet', () => {
    const { state } = open()
    const id = state.queueMessage({ content: 'later' })
    expect(state.getMessage(id)).toBe(undefined)
    expect(state.getMessages()).toHaveLength(2)
  })

  test('changed and removed messages read as they will be', () => {
    const { state, takeChanges } = open()
    state.updateMessage('m1', 'other')
    state.deleteMessage('m2')
    expect(state.getMessage('m1')?.message.text).toBe('other')
    expect(state.getMessages().map(({ id }) => id)).toEqual(['m1'])
    expect(() => state.updateMessage('m2', 'x')).toThrow(code('MESSAGE_NOT_FOUND'))
    expect(() => state.deleteMessage('none')).toThrow(code('MESSAGE_NOT_FOUND'))
    const kernel = after(takeChanges().events)
    expect(kernel.entries.map(({ message, isRemoved }) => [message.text, isRemoved])).toEqual([
      ['other', false],
      ['hi', true],
    ])
  })

  test('a change keeps id, time and calls', () => {
    const calls = [{ toolCallId: 'c1', toolName: 't', arguments: {} }]
    log.push(added('m3', 'a', new AssistantMessage('calling', calls, { id: 'm3' })))
    const { state } = open()
    state.updateMessage('m3', 'said otherwise')
    expect(state.getMessage('m3')?.message).toMatchObject({ id: 'm3', toolCalls: calls })
    expect(() => state.updateMessage('m3', new UserMessage('x'))).toThrow(code('INPUT_INVALID'))
    expect(() => state.deleteMessage('m3')).toThrow('not settled')
  })

  test('results of calls are listed after them, and cannot be changed', () => {
    const calls = [{ toolCallId: 'c1', toolName: 't', arguments: {} }]
    log.push(added('m3', 'a', new AssistantMessage('', calls, { id: 'm3' })), {
      type: 'tool_execution_end',
      at,
      turnId: 'turn-m3',
      toolCallId: 'c1',
      toolName: 't',
      outcome: 'success',
      result: 'done',
    })
    const { state } = open()
    expect(state.getMessages().map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm3.results'])
    expect(state.getMessage('m3.results')?.message.type).toBe('tool_result')
    expect(() => state.updateMessage('m3.results', 'x')).toThrow('results of calls')
    state.deleteMessage('m3')
    expect(state.getMessages().map(({ id }) => id)).toEqual(['m1', 'm2'])
    expect(state.getMessage('m3.results')).toBe(undefined)
  })

  test('silent ones are listed on demand; order, offset and limit', () => {
    const { state } = open()
    const silent = state.injectMessage({ content: 's', isSilent: true })
    const ids = (query: Parameters<typeof state.getMessages>[0]) =>
      state.getMessages(query).map(({ id }) => id)
    expect(ids({})).toEqual(['m1', 'm2'])
    expect(ids({ includeSilent: true, order: 'desc' })).toEqual([silent, 'm2', 'm1'])
    expect(ids({ includeSilent: true, offset: 1, limit: 1 })).toEqual(['m2'])
    expect(ids({ order: 'desc', limit: 1 })).toEqual(['m2'])
  })

  test('what cannot be a message is refused, and nothing is written', () => {
    const { state, takeChanges } = open()
    const calls = [{ toolCallId: 'c', toolName: 't', arguments: {} }]
    const refused = [
      new AssistantMessage('', calls),
      new ToolResultMessage([{ toolCallId: 'c', result: 1 }]),
      new UserMessage('twice', { id: 'm1' }),
      5 as unknown as string,
      'x'.repeat(2000),
    ]
    for (const content of refused) {
      expect(() => state.queueMessage({ content })).toThrow(code('INPUT_INVALID'))
      expect(() => state.injectMessage({ content })).toThrow(code('INPUT_INVALID'))
    }
    expect(() => state.queueMessage({ content: 'x', attachments: ['/none'] })).toThrow(
      code('FILE_NOT_FOUND'),
    )
    expect(takeChanges().events).toEqual([])
  })

  test('attachments may be files of the same call', async () => {
    const { state, takeChanges } = open()
    await state.writeFile('/a.txt', 'x')
    state.queueMessage({ content: 'see', attachments: ['//a.txt'] })
    expect(takeChanges().events[1]).toMatchObject({ attachments: ['/a.txt'] })
  })
})

describe('files', () => {
  test('what was written can be read, and comes with its bytes', async () => {
    const { state, takeChanges } = open({ turnId: 't', toolCallId: 'c' })
    const stat = await state.writeFile('/dir/a.txt', 'héllo')
    const hash = sha256Hex('héllo')
    expect(stat).toMatchObject({ path: '/dir/a.txt', mediaType: 'text/plain', sizeBytes: 6, hash })
    expect(await state.readTextFile('/dir/a.txt')).toBe('héllo')
    expect(state.statFile('//dir/a.txt')).toEqual(stat)
    const { events, blobs } = takeChanges()
    expect(events).toMatchObject([{ type: 'file_written', turnId: 't', toolCallId: 'c', hash }])
    expect(blobs).toEqual([{ hash, bytes: Uint8Array.from(Buffer.from('héllo')) }])
    expect(after(events).files.get('/dir/a.txt')).toEqual(stat)
  })

  test('an empty file is a file; a too large one is refused', async () => {
    const { state } = open()
    expect(await state.writeFile('/empty', '')).toMatchObject({ sizeBytes: 0 })
    expect(await state.readFile('/empty')).toEqual(new Uint8Array())
    await state.writeFile('/full', new Uint8Array(1000))
    await expect(state.writeFile('/more', new Uint8Array(1001))).rejects.toThrow(
      code('FILE_TOO_LARGE'),
    )
    await expect(state.writeFile('/../a', '')).rejects.toThrow(code('FILE_PATH_INVALID'))
  })

  test('bytes belong to whoever holds them', async () => {
    const { state, takeChanges } = open()
    const mine = Uint8Array.of(1, 2, 3)
    await state.writeFile('/a', mine)
    mine[0] = 9
    ;(await state.readFile('/a'))[1] = 9
    expect(takeChanges().blobs[0]?.bytes).toEqual(Uint8Array.of(1, 2, 3))
  })

  test('files of the thread are read from the store', async () => {
    await keep('/old.txt', 'old text')
    const { state } = open()
    expect(await state.readTextFile('/old.txt')).toBe('old text')
    await expect(state.readFile('/none')).rejects.toThrow(code('FILE_NOT_FOUND'))
    state.removeFile('/old.txt')
    await expect(state.readFile('/old.txt')).rejects.toThrow(code('FILE_NOT_FOUND'))
    expect(() => state.removeFile('/old.txt')).toThrow(code('FILE_NOT_FOUND'))
  })

  test('moving keeps the content', async () => {
    await keep('/a.txt', 'text')
    const { state, takeChanges } = open()
    state.moveFile('/a.txt', '/b/c.txt')
    state.moveFile('/b/c.txt', '/b/c.txt')
    expect(await state.readTextFile('/b/c.txt')).toBe('text')
    expect(state.listFiles().map(({ path }) => path)).toEqual(['/b/c.txt'])
    expect([...after(takeChanges().events).files.keys()]).toEqual(['/b/c.txt'])
  })

  test('list, find and search see both', async () => {
    await keep('/notes/a.md', 'one\ntwo needle\r\nthree')
    const { state } = open()
    await state.writeFile('/notes/b.md', 'needle')
    await state.writeFile('/notes/c.bin', Buffer.from('\0needle'))
    expect(state.listFiles('/notes/b').map(({ path }) => path)).toEqual(['/notes/b.md'])
    expect(state.findFiles('/**/*.md').map(({ path }) => path)).toEqual([
      '/notes/a.md',
      '/notes/b.md',
    ])
    expect(await state.grepFiles('needle')).toEqual([
      { path: '/notes/a.md', line: 2, text: 'two needle' },
      { path: '/notes/b.md', line: 1, text: 'needle' },
    ])
    expect(await state.grepFiles('needle', '/notes/a')).toHaveLength(1)
  })
})

describe('values', () => {
  test('read as they were set, copied and frozen', () => {
    log.push({ type: 'value_set', at, key: 'old', value: 1 })
    const { state, takeChanges } = open()
    const value = { b: [1], a: 'x' }
    state.setValue('new', value)
    value.b.push(2)
    expect(state.getValue('new')).toEqual({ b: [1], a: 'x' })
    expect(Object.isFrozen(state.getValue('new'))).toBe(true)
    state.setValue('old', null)
    expect(state.getValue('old')).toBe(undefined)
    expect(state.listValues()).toEqual({ new: { b: [1], a: 'x' } })
    expect(state.listValues('o')).toEqual({})
    expect([...after(takeChanges().events).values]).toEqual([['new', { b: [1], a: 'x' }]])
  })

  test.each([
    ['', 1],
    ['x'.repeat(257), 1],
    ['k', undefined],
    ['k', Number.NaN],
    ['k', () => 1],
    ['k', new Map()],
    ['k', 'x'.repeat(256 * 1024)],
  ])('%.10s: %o is refused', (key, value) => {
    const { state, takeChanges } = open()
    expect(() => state.setValue(key, value as JsonValue)).toThrow(code('VALUE_INVALID'))
    expect(takeChanges().events).toEqual([])
  })

  test('limits are exact', () => {
    const { state } = open()
    const longest = 'x'.repeat(256 * 1024 - 2) // with its quotes, as JSON, exactly the limit
    state.setValue('x'.repeat(256), longest)
    expect(state.getValue('x'.repeat(256))).toBe(longest)
  })
})

describe('variables', () => {
  test('a secret is sealed in the event and readable at once', () => {
    const { state, takeChanges, secrets } = open()
    state.setEnv('TOKEN', 'swordfish', { type: 'secret' })
    expect(state.env('TOKEN')).toBe('swordfish')
    expect(state.envType('TOKEN')).toBe('secret')
    const { events } = takeChanges()
    expect(JSON.stringify(events)).not.toContain('swordfish')
    expect(secrets()).toEqual(['swordfish'])
    log.push(...events)
    expect(open().state.env('TOKEN')).toBe('swordfish')
  })

  test('a secret stays one', () => {
    const { state, takeChanges } = open()
    state.setEnv('TOKEN', 'swordfish', { type: 'secret' })
    state.setEnv('TOKEN', 'angelfish', { type: 'text' })
    expect(JSON.stringify(takeChanges().events)).not.toContain('fish')
  })

  test('text, removal and missing ones', () => {
    const { state } = open()
    state.setEnv('NAME', 'value')
    expect([state.env('NAME'), state.envType('NAME'), state.hasEnv('NAME')]).toEqual([
      'value',
      'text',
      true,
    ])
    state.setEnv('NAME', null)
    expect(state.hasEnv('NAME')).toBe(false)
    expect(() => state.env('NAME')).toThrow(code('ENV_MISSING'))
    expect(() => state.setEnv('NO-NAME', 'x')).toThrow(code('ENV_INVALID'))
    expect(() => state.setEnv('NAME', 5 as unknown as string)).toThrow(code('ENV_INVALID'))
  })

  test('a value that came with the creation is not handed on after a change', () => {
    log.push({ type: 'env_set', at, name: 'S', valueType: 'text', value: 'x', isScoped: true })
    const { state, takeChanges } = open()
    state.setEnv('S', 'y')
    expect(after(takeChanges().events).env.get('S')).toMatchObject({ value: 'y', isScoped: true })
  })
})

describe('effects', () => {
  test('by delay and by calendar', () => {
    const { state, takeChanges } = open()
    const soon = state.scheduleEffect('remind', { a: 1 }, 1500)
    const daily = state.scheduleEffect('remind', null, { cron: '@daily', key: 'd' })
    const now = state.scheduleEffect('remind', null, 0)
    const expected = [
      { id: now, at: '2026-01-02T00:00:00.000Z', attempts: 0 },
      { id: soon, at: '2026-01-02T00:00:01.500Z', args: { a: 1 } },
      { id: daily, at: '2026-01-03T00:00:00.000Z', cron: '@daily', key: 'd' },
    ]
    expect(state.getScheduledEffects()).toMatchObject(expected)
    expect(state.getScheduledEffects('other')).toEqual([])
    log.push(...takeChanges().events)
    expect(open().state.getScheduledEffects('remind')).toMatchObject(expected)
  })

  test('by the calendar of a time zone', () => {
    const { state, takeChanges } = open()
    const when = { cron: '@daily', timeZone: 'Europe/Zurich' }
    state.scheduleEffect('remind', null, when)
    const expected = [{ at: '2026-01-02T23:00:00.000Z', ...when }]
    expect(state.getScheduledEffects()).toMatchObject(expected)
    log.push(...takeChanges().events)
    expect(open().state.getScheduledEffects()).toMatchObject(expected)
  })

  test('the same key replaces, in the log and in the buffer', () => {
    const first = open()
    const one = first.state.scheduleEffect('remind', null, { delayMs: 1, key: 'k' })
    log.push(...first.takeChanges().events)
    const { state, takeChanges } = open()
    const two = state.scheduleEffect('remind', null, { delayMs: 2, key: 'k' })
    const three = state.scheduleEffect('remind', null, { delayMs: 3, key: 'k' })
    expect(state.getScheduledEffects().map(({ id }) => id)).toEqual([three])
    const { events } = takeChanges()
    expect(events).toMatchObject([
      { type: 'effect_ended', effectId: one, outcome: 'removed' },
      { type: 'effect_scheduled', effectId: two },
      { type: 'effect_ended', effectId: two, outcome: 'removed' },
      { type: 'effect_scheduled', effectId: three },
    ])
    expect([...after(events).effects.keys()]).toEqual([three])
  })

  test('removing says whether there was one', () => {
    const { state } = open()
    const id = state.scheduleEffect('remind', null, 5)
    expect(state.removeScheduledEffect(id)).toBe(true)
    expect(state.removeScheduledEffect(id)).toBe(false)
    expect(state.getScheduledEffects()).toEqual([])
  })

  test.each([
    ['nothing', 1, 'EFFECT_NOT_FOUND'],
    ['remind', -1, 'EFFECT_INVALID'],
    ['remind', Number.NaN, 'EFFECT_INVALID'],
    ['remind', Infinity, 'EFFECT_INVALID'],
    ['remind', {}, 'EFFECT_INVALID'],
    ['remind', { delayMs: 1, cron: '@daily' }, 'EFFECT_INVALID'],
    ['remind', { delayMs: 1, key: '' }, 'EFFECT_INVALID'],
    ['remind', { cron: '0 0 30 2 *', key: 'k' }, 'EFFECT_INVALID'],
    ['remind', { cron: '@daily', timeZone: 'Mars/Olympus' }, 'EFFECT_INVALID'],
    ['remind', { delayMs: 1, timeZone: 'Europe/Zurich' }, 'EFFECT_INVALID'],
  ])('%s at %o is refused', (name, when, word) => {
    const { state, takeChanges } = open()
    expect(() => state.scheduleEffect(name, null, when)).toThrow(code(word))
    expect(takeChanges().events).toEqual([])
  })
})

describe('hierarchy and session', () => {
  test('identity', () => {
    const { state } = open()
    expect(state).toMatchObject({
      threadId,
      agentId: 'helper',
      userId: 'ann',
      tenant: 'acme',
      createdAt: Date.parse(at) * 1000,
      terminated: null,
      children: [],
      arguments: { topic: 'x' },
    })
    expect(state.getParentThread()).toEqual({ threadId: 'parent-1' })
  })

  test('what goes to the parent, ends the session or the thread', async () => {
    const { state, takeChanges } = open()
    await state.writeFile('/r.txt', 'r')
    state.notifyParent('found it', ['/r.txt'])
    state.stopSession({ result: 'done', attachments: ['/r.txt'] })
    state.terminate()
    expect(() => state.notifyParent('x', ['/none'])).toThrow(code('FILE_NOT_FOUND'))
    expect(takeChanges()).toMatchObject({
      toParent: [{ text: 'found it', attachments: ['/r.txt'] }],
      stopSession: { result: 'done', failed: false, attachments: ['/r.txt'] },
      terminates: true,
    })
    const values = { reads: [], updates: new Map() }
    const empty = { events: [], blobs: [], values, toParent: [], terminates: false }
    expect(takeChanges()).toEqual(empty)
  })

  test('without a parent there is nobody to tell', () => {
    const { parent: _parent, ...created } = log[0] as RuntimeEvent & { parent: unknown }
    log[0] = created as RuntimeEvent
    const { state, takeChanges } = open()
    state.notifyParent('hello?')
    expect(state.getParentThread()).toBe(null)
    expect(takeChanges().toParent).toEqual([])
  })

  test('status and events show at once', async () => {
    const { state, takeChanges } = open({ turnId: 't' })
    await state.setStatus('halfway')
    await state.emit('progress', { percent: 50 }, { transient: true })
    expect(shown).toEqual([
      {
        type: 'status_changed',
        at: '2026-01-02T00:00:00.000Z',
        status: 'running',
        text: 'halfway',
      },
      {
        type: 'custom_event',
        at: '2026-01-02T00:00:00.000Z',
        name: 'progress',
        data: { percent: 50 },
        turnId: 't',
        isTransient: true,
      },
    ])
    expect(takeChanges().events).toEqual([])
    await expect(state.emit('x', (() => 1) as unknown as JsonValue)).rejects.toThrow('not JSON')
  })

  test('only listed tools can be invoked', async () => {
    const invoke = async (name: string, args: JsonValue) => ({ name, args })
    const { state } = open({ invoke, allowedTools: ['lookup'], toolName: 'plan' })
    expect(await state.invokeTool('lookup', { id: 1 })).toEqual({ name: 'lookup', args: { id: 1 } })
    await expect(state.invokeTool('delete', {})).rejects.toThrow(code('TOOL_NOT_ALLOWED'))
    expect(await open({ invoke }).state.invokeTool('any', 1)).toBeTruthy()
    await expect(open().state.invokeTool('lookup', {})).rejects.toThrow(code('TOOL_NOT_ALLOWED'))
  })

  test('children: the text that was published since the last session, else lifecycle; others than resumable go when they end', () => {
    const created = (reference: string, isResumable: boolean): RuntimeEvent => ({
      type: 'subagent_created',
      at,
      reference,
      name: 'worker',
      description: 'works',
      relation: 'worker',
      isResumable,
      isBlocking: false,
      parentCommunication: 'implicit',
    })
    const updated = (
      reference: string,
      statusText: string,
      status: 'running' | 'idle' = 'running',
    ): RuntimeEvent => ({ type: 'subagent_updated', at, reference, status, statusText })
    const ended = (reference: string, outcome: 'completed' | 'failed' | 'terminated') =>
      ({ type: 'subagent_ended', at, reference, outcome }) as const
    log.push(
      ...['r1', 'r2', 'r3', 'r4', 'r5'].map((id) => created(id, true)),
      ...['d1', 'd2'].map((id) => created(id, false)),
      updated('r1', 'terminated'),
      updated('r2', 'text'),
      updated('r5', 'text', 'idle'),
      ended('r2', 'completed'),
      ended('r3', 'failed'),
      ended('r4', 'terminated'),
      ended('d2', 'completed'),
    )
    const { children } = open().state
    expect(children.map(({ reference, status }) => [reference, status])).toEqual([
      ['r1', 'terminated'],
      ['r2', 'idle'],
      ['r3', 'failed'],
      ['r4', 'terminated'],
      ['r5', 'text'],
      ['d1', 'running'],
    ])
    expect(children[5]).toEqual({
      reference: 'd1',
      name: 'worker',
      description: 'works',
      resumable: false,
      blocking: false,
      createdAt: Date.parse(at) * 1000,
      status: 'running',
      parentCommunication: 'implicit',
    })
  })
})

test('reads before the commit equal reads after it', async () => {
  const path = fc.constantFrom('/a', '/b', '/c/d')
  const key = fc.constantFrom('x', 'y', 'z')
  const name = fc.constantFrom('A', 'B')
  const action = fc.oneof(
    fc.record({ do: fc.constant('write' as const), path, text: fc.string() }),
    fc.record({ do: fc.constant('remove' as const), path }),
    fc.record({ do: fc.constant('move' as const), path, to: path }),
    fc.record({ do: fc.constant('value' as const), key, value: fc.option(fc.jsonValue()) }),
    fc.record({ do: fc.constant('env' as const), name, value: fc.option(fc.string()) }),
    fc.record({ do: fc.constant('secret' as const), name, value: fc.string() }),
    fc.record({ do: fc.constant('effect' as const), delayMs: fc.nat(1000), key }),
    fc.record({ do: fc.constant('inject' as const), text: fc.string(), isSilent: fc.boolean() }),
    fc.record({ do: fc.constant('update' as const), index: fc.nat(5), text: fc.string() }),
    fc.record({ do: fc.constant('delete' as const), index: fc.nat(5) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(action)), async (rounds) => {
      store = memoryStore()
      const first = log
      try {
        for (const actions of rounds) {
          const { state, takeChanges } = open()
          for (const one of actions) await perform(state, one)
          const before = everything(state)
          const { events } = takeChanges()
          log = [...log, ...events]
          expect(everything(open().state)).toEqual(before)
        }
      } finally {
        log = first
      }
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 100 },
  )

  type Action = typeof action extends fc.Arbitrary<infer T> ? T : never

  async function perform(state: ThreadFacade['state'], one: Action): Promise<void> {
    const id = () => {
      const messages = state.getMessages({ includeSilent: true })
      return messages[('index' in one ? one.index : 0) % Math.max(1, messages.length)]?.id
    }
    switch (one.do) {
      case 'write':
        await state.writeFile(one.path, one.text)
        return
      case 'remove':
        if (state.statFile(one.path)) state.removeFile(one.path)
        return
      case 'move':
        if (state.statFile(one.path)) state.moveFile(one.path, one.to)
        return
      case 'value':
        return state.setValue(one.key, one.value as JsonValue)
      case 'env':
        return state.setEnv(one.name, one.value)
      case 'secret':
        return state.setEnv(one.name, one.value, { type: 'secret' })
      case 'effect':
        state.scheduleEffect('remind', null, { delayMs: one.delayMs, key: one.key })
        return
      case 'inject':
        state.injectMessage({ content: one.text, isSilent: one.isSilent })
        return
      case 'update':
        if (id()) state.updateMessage(id()!, one.text)
        return
      case 'delete':
        if (id()) state.deleteMessage(id()!)
    }
  }

  function everything(state: ThreadFacade['state']): unknown {
    return {
      files: state.listFiles(),
      values: state.listValues(),
      env: ['A', 'B'].map((one) => [state.envType(one), state.hasEnv(one) && state.env(one)]),
      effects: state.getScheduledEffects(),
      messages: state
        .getMessages({ includeSilent: true })
        .map((stored) => ({ ...stored, message: messageToJSON(stored.message) })),
    }
  }
})

const ids = sequentialIds('id')
const clock = manualClock(Date.parse('2026-01-02T00:00:00Z'))
const vault = aesVault({ key: new Uint8Array(32) })

function open(options: Partial<ThreadFacadeOptions> = {}): ThreadFacade {
  const kernel = foldKernel(log.map((event, index) => ({ seq: index + 1, event })))
  // Only what a facade reads; the rest belongs to the kernel.
  const environment = {
    registry: { effects: new Map([['remind', {}]]) } as unknown as Registry,
    store,
    clock,
    ids,
    vault,
    limits: { maxFileBytes: 1000, maxMessageBytes: 1000 },
  } as unknown as KernelEnvironment
  const agent = {
    definition: {},
    a: { prompt: { definition: {}, variables: [], tools: [] } },
  } as unknown as ResolvedAgent
  return createThreadFacade({
    kernel,
    head: { owner: 'ann', tenant: 'acme' } as ThreadHead,
    environment,
    env: createEnvReader({ kernel, agent, side: 'a', instanceEnv: {}, vault, threadId }),
    signal: new AbortController().signal,
    immediate: async (events) => void shown.push(...events),
    ...options,
  })
}

function after(events: readonly RuntimeEvent[]): KernelState {
  return foldKernel([...log, ...events].map((event, index) => ({ seq: index + 1, event })))
}

async function keep(path: string, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text)
  const hash = sha256Hex(bytes)
  const sizeBytes = bytes.length
  const event = {
    type: 'file_written',
    at,
    path,
    mediaType: 'text/plain',
    sizeBytes,
    hash,
  } as const
  const create = {
    tenant: 'acme',
    owner: null,
    agent: 'helper',
    parentId: null,
    rootId: threadId,
    title: null,
    tags: [],
    clientId: null,
    createdAt: 0,
  }
  await store.commit({
    point: 'test',
    threads: [{ id: threadId, create, append: [event] }],
    blobs: [{ hash, bytes }],
  })
  log.push(event)
}

function added(id: string, side: 'a' | 'b', message: UserMessage | AssistantMessage): RuntimeEvent {
  const json = messageToJSON(message)
  return { type: 'message_added', at, turnId: `turn-${id}`, side, message: json }
}
