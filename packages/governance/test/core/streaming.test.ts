import { expect, test } from 'vitest'
import { defineVerifier, type Envelope } from '../../src/index.ts'
import { checkChunks } from '../../src/schema/index.ts'
import { codesOf, init, kit, taskOf, toolOf, undoBy } from '../support/kit.ts'
import { assertValid } from '../support/normative.ts'

test('UAICP-14 every chunk before the end is marked unverified, and the end confirms or retracts', async () => {
  for (const isGood of [true, false]) {
    const { governor, world, entries } = await kit()
    const read = toolOf(world, 'read', {
      run: (_args, context) => void context.chunk('from a tool'),
    })
    const needs = isGood ? [] : [{ type: 'test_report' as const }]
    const chunks: Envelope[] = []
    const result = await governor.run(
      taskOf({ tools: [read], needs }),
      { ...init, onChunk: (chunk) => chunks.push(chunk) },
      async (run) => {
        run.chunk('one')
        await run.call(read, {})
        run.chunk('two')
        return 1
      },
    )
    expect(result.state).toBe(isGood ? 'deliver' : 'fail_safe')
    for (const chunk of chunks) assertValid('envelope', chunk)
    const logged = (await entries()).filter(({ envelope }) => envelope.streaming)
    expect(logged.map(({ envelope }) => envelope.streaming?.chunk_id)).toEqual(
      chunks.map(({ streaming }) => streaming?.chunk_id),
    )
    expect(chunks.map(({ streaming }) => streaming?.['uaicp:text'])).toEqual([
      'one',
      'from a tool',
      'two',
      undefined,
    ])
    const early = chunks.slice(0, 3)
    expect(early.every(({ streaming }) => streaming?.['uaicp:verified'] === false)).toBe(true)
    expect(early.some(({ state }) => state === 'deliver')).toBe(false)
    expect('uaicp:retracted' in chunks.at(-1)!.streaming!).toBe(!isGood)
    expect(chunks.at(-1)).toMatchObject({
      state: isGood ? 'deliver' : 'fail_safe',
      streaming: isGood
        ? { is_final: true, stream_index: 3, 'uaicp:verified': true }
        : { is_final: true, stream_index: 3, 'uaicp:verified': false, 'uaicp:retracted': 3 },
    })
  }
})

test('UAICP-14 a tool that writes may not stream', async () => {
  const { governor, world } = await kit()
  const chunks: Envelope[] = []
  const write = toolOf(world, 'write', {
    risk: 'write_low_risk',
    run: (_args, context) => context.chunk('early'),
  })
  const result = await governor.run(
    taskOf({ tools: [write] }),
    { ...init, onChunk: (chunk) => chunks.push(chunk) },
    async (run) => (await run.call(write, {})).result,
  )
  expect(codesOf(result)).toContain('TOOL_ERROR')
  expect(chunks).toEqual([])
})

test('UAICP-16 a replay gives the same ids and indices; a consumer sees gaps and duplicates', async () => {
  const { governor, world, restart, sign, entries } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const passes: Envelope[][] = [[], []]
  const body =
    (text: string): Parameters<typeof governor.run>[2] =>
    async (run) => {
      run.chunk('a')
      run.chunk(text)
      await run.call(high, {})
      run.chunk('c')
      return 1
    }
  const first = await governor.run(
    task,
    { ...init, onChunk: (chunk) => passes[0]?.push(chunk) },
    body('b'),
  )
  if (first.outcome !== 'pending') throw new Error('not pending')
  const tokens = [await sign(first.waiting[0]!)]
  const second = await restart().resume(first.request_id, task, body('b'), {
    tokens,
    onChunk: (chunk) => passes[1]?.push(chunk),
  })
  expect(second.state).toBe('deliver')
  const places = passes.map((pass) => pass.map(({ streaming }) => streaming))
  expect(places[1]?.slice(0, 2)).toEqual(places[0])
  expect(places[1]?.map((streaming) => streaming?.stream_index)).toEqual([0, 1, 2, 3])
  expect((await entries()).filter(({ type }) => type === 'chunk')).toHaveLength(3)

  const chunks = passes[1] ?? []
  expect(checkChunks(chunks)).toEqual([])
  expect(checkChunks([chunks[0]!, chunks[2]!, chunks[3]!])).toEqual([
    { type: 'gap', stream_index: 1 },
  ])
  expect(checkChunks([chunks[0]!, chunks[0]!, ...chunks.slice(1)])).toEqual([
    { type: 'duplicate', stream_index: 0 },
  ])
  expect(checkChunks(chunks.slice(0, 2))).toEqual([{ type: 'open', stream_index: 2 }])
  const { streaming } = chunks.at(-1)!
  const late = { streaming: { ...streaming!, chunk_id: 'late', stream_index: chunks.length } }
  expect(checkChunks([...chunks, late])).toEqual([{ type: 'late', stream_index: chunks.length }])
})

test('UAICP-16 a replay that streams another text is a conflict, not a guess', async () => {
  const { governor, world, restart } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(world, 'undo_high')] })
  const body =
    (text: string): Parameters<typeof governor.run>[2] =>
    async (run) => {
      run.chunk(text)
      return (await run.call(high, {})).result
    }
  const first = await governor.run(task, init, body('a'))
  const id = 'request_id' in first ? first.request_id : ''
  expect(codesOf(await restart().resume(id, task, body('b')))).toContain('STATE_CONFLICT')
})

test.each(['cancelled', 'past its deadline'])(
  'UAICP-16 a run that another process finds %s retracts the chunks of the first',
  async (how) => {
    const { governor, world, restart, time, entries } = await kit()
    const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
    const tools = [high, toolOf(world, 'undo_high')]
    const task = taskOf({ tools, limits: { deadlineMs: 1000 } })
    const first = await governor.run(task, init, async (run) => {
      run.chunk('a')
      run.chunk('b')
      await run.call(high, {})
      return 1
    })
    if (first.outcome !== 'pending') throw new Error('not pending')
    const next = restart({ tasks: [task] })
    if (how === 'cancelled') await next.cancel(first.request_id)
    else {
      await time.advance(1000)
      await next.recover()
    }
    const logged = (await entries()).filter(({ envelope }) => envelope.streaming)
    expect(checkChunks(logged.map(({ envelope }) => envelope))).toEqual([])
    expect(logged.at(-1)).toMatchObject({
      type: 'failed_safe',
      envelope: { streaming: { is_final: true, stream_index: 2, 'uaicp:retracted': 2 } },
    })
  },
)

test('UAICP-16 a repair goes on counting, also when it streams the same text again', async () => {
  const { governor, entries } = await kit()
  const chunks: Envelope[] = []
  const task = taskOf({
    tools: [],
    repair: { max: 2 },
    verifiers: [
      defineVerifier({
        id: 'third',
        timeoutMs: 1000,
        check: (_evidence, { candidate }) => [
          { check_id: 'is third', result: candidate === 3 ? 'pass' : 'fail' },
        ],
      }),
    ],
  })
  const result = await governor.run(
    task,
    { ...init, onChunk: (chunk) => chunks.push(chunk) },
    async (run) => {
      run.chunk('the same')
      run.chunk(`attempt ${run.attempt}`)
      return run.attempt
    },
  )
  expect(result.state).toBe('deliver')
  expect(checkChunks(chunks)).toEqual([])
  const ids = chunks.map(({ request_id, streaming }) => [
    streaming?.stream_index,
    streaming?.chunk_id.replace(request_id, ''),
    streaming?.['uaicp:text'],
  ])
  expect(ids).toEqual([
    [0, '/0', 'the same'],
    [1, '/1', 'attempt 1'],
    [2, '/2', 'the same'],
    [3, '/3', 'attempt 2'],
    [4, '/4', 'the same'],
    [5, '/5', 'attempt 3'],
    [6, '/6', undefined],
  ])
  // What the first two attempts streamed is void; the end confirms only the rest.
  expect(chunks.at(-1)?.streaming).toEqual({
    chunk_id: `${chunks[0]?.request_id}/6`,
    is_final: true,
    stream_index: 6,
    'uaicp:verified': true,
    'uaicp:retracted': 4,
  })
  expect((await entries()).at(-1)?.envelope.streaming).toEqual(chunks.at(-1)?.streaming)
  expect((await entries()).filter(({ type }) => type === 'chunk')).toHaveLength(6)
})

test('UAICP-14 a run that fails after a repair retracts the chunks of all its attempts', async () => {
  const { governor } = await kit()
  const chunks: Envelope[] = []
  const result = await governor.run(
    taskOf({ tools: [], repair: { max: 1 } }),
    { ...init, onChunk: (chunk) => chunks.push(chunk) },
    async (run) => {
      run.chunk('a guess')
      if (run.attempt === 1) run.chunk('another')
      throw new Error('no')
    },
  )
  expect(result.state).toBe('fail_safe')
  expect(chunks.at(-1)?.streaming).toMatchObject({
    stream_index: 3,
    'uaicp:verified': false,
    'uaicp:retracted': 3,
  })
})

test('UAICP-14 a repair that streams nothing confirms nothing of what was streamed before it', async () => {
  const { governor } = await kit()
  const chunks: Envelope[] = []
  const result = await governor.run(
    taskOf({ tools: [], repair: { max: 1 } }),
    { ...init, onChunk: (chunk) => chunks.push(chunk) },
    async (run) => {
      if (run.attempt === 2) return 'checked'
      run.chunk('a guess')
      throw new Error('once more')
    },
  )
  expect(result.state).toBe('deliver')
  expect(chunks.at(-1)?.streaming).toMatchObject({ stream_index: 1, 'uaicp:retracted': 1 })
})

test('UAICP-16 a repair that waited and goes on repeats its own chunks, not those before it', async () => {
  const { governor, world, restart, sign } = await kit()
  const high = toolOf(world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({
    tools: [high, toolOf(world, 'undo_high')],
    needs: [{ type: 'tool_result', source: 'high' }],
    repair: { max: 1 },
  })
  const passes: Envelope[][] = [[], []]
  const body: Parameters<typeof governor.run>[2] = async (run) => {
    run.chunk(`attempt ${run.attempt}`)
    if (run.attempt === 2) await run.call(high, {})
    run.chunk('done')
    return 1
  }
  const first = await governor.run(
    task,
    { ...init, onChunk: (chunk) => passes[0]?.push(chunk) },
    body,
  )
  if (first.outcome !== 'pending') throw new Error('not pending')
  const tokens = [await sign(first.waiting[0]!)]
  const second = await restart().resume(first.request_id, task, body, {
    tokens,
    onChunk: (chunk) => passes[1]?.push(chunk),
  })
  expect(second.state).toBe('deliver')
  const shown = passes.map((pass) =>
    pass.map(({ streaming }) => [streaming?.stream_index, streaming?.['uaicp:text']]),
  )
  expect(shown).toEqual([
    [
      [0, 'attempt 1'],
      [1, 'done'],
      [2, 'attempt 2'],
    ],
    [
      [2, 'attempt 2'],
      [3, 'done'],
      [4, undefined],
    ],
  ])
})

test('UAICP-32 what was streamed ends with success or uncertain, and is pending before', async () => {
  for (const isGood of [true, false]) {
    const { governor } = await kit()
    const chunks: Envelope[] = []
    await governor.run(
      taskOf({ tools: [], needs: isGood ? [] : [{ type: 'test_report' }] }),
      { ...init, onChunk: (chunk) => chunks.push(chunk) },
      async (run) => {
        run.chunk('one')
        return 1
      },
    )
    const end = isGood ? 'success' : 'uncertain'
    expect(chunks.map(({ outcome }) => outcome)).toEqual(['pending', end])
  }
})

test.each<[string, string[]]>([
  ['0 1!', []],
  ['0 3!', ['gap 1', 'gap 2']],
  ['2!', ['gap 0', 'gap 1']],
  ['0! 1', ['late 1']],
  ['0! 1 2', ['late 1', 'late 2']],
  ['0! 1 2!', ['late 1', 'late 2']],
  ['0 0 1!', ['duplicate 0']],
  ['0! 0', ['duplicate 0']],
  ['0 1', ['open 2']],
  ['', ['open 0']],
])('UAICP-16 chunks "%s" have the faults %o', (sent, faults) => {
  const chunks = (sent.match(/\d+!?/g) ?? []).map((one) => {
    const stream_index = Number.parseInt(one, 10)
    return { streaming: { chunk_id: one, is_final: one.endsWith('!'), stream_index } }
  })
  const found = checkChunks(chunks).map(({ type, stream_index }) => `${type} ${stream_index}`)
  expect(found).toEqual(faults)
})
