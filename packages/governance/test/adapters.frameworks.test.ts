import { describe, expect, test } from 'vitest'
import type { ApprovalRequest, Result, Run } from '../src/index.ts'
import { verifyLog } from '../src/audit/verify-log.ts'
import { identity, openBank, shapeOf, type Bank } from './bank.ts'
import { aiSdkTools } from '../src/adapters/ai-sdk-tools.ts'
import { langGraphTools } from '../src/adapters/langgraph-tools.ts'
import { openAiAgentsTools } from '../src/adapters/openai-agents-tools.ts'
import { uppTools } from '../src/adapters/upp-tools.ts'
import { callThrough, overlay, recordAnswer, recordStream } from '../src/adapters/call-through.ts'
import { frameworks, type Framework, type ScriptedCall } from './frameworks.ts'
import { init, kit, taskOf, toolOf, undoBy } from './support/kit.ts'

const ledger: ScriptedCall = { id: 'a', tool: 'ledger', args: { account: 'A-1' } }
const note: ScriptedCall = { id: 'b', tool: 'note', args: { text: 'hello' } }
const forbidden: ScriptedCall = { id: 'c', tool: 'note', args: { text: 'forbidden' } }
const reverse: ScriptedCall = { id: 'd', tool: 'reverse', args: { wire: 'W-1' } }
const broken: ScriptedCall = { id: 'e', tool: 'broken', args: { x: '' } }

interface Told {
  readonly state: string
  readonly codes: readonly string[]
  readonly effects: readonly string[]
  readonly shape: readonly string[]
}

type Approve = (bank: Bank, request: ApprovalRequest) => Promise<string>

interface Scenario {
  readonly script: readonly ScriptedCall[]
  readonly approve?: Approve
  /** Tokens to resume with, after the run ended pending; as often as there are entries. */
  readonly resumes?: readonly Approve[]
  readonly expected: Omit<Told, 'shape'>
}

const scenarios: Record<string, Scenario> = {
  'reads and a low-risk write are delivered': {
    script: [ledger, note],
    expected: { state: 'deliver', codes: [], effects: ['ledger A-1', 'note hello'] },
  },
  'without the required evidence nothing is delivered, and the write is undone': {
    script: [note],
    expected: {
      state: 'fail_safe',
      codes: ['EVIDENCE_MISSING'],
      effects: ['note hello', 'note void'],
    },
  },
  'what policy forbids does not run': {
    script: [ledger, forbidden],
    expected: { state: 'deliver', codes: ['POLICY_BLOCKED'], effects: ['ledger A-1'] },
  },
  'a high-risk write runs when the person asked approves': {
    script: [ledger, reverse],
    approve: (bank, request) => bank.sign(request),
    expected: { state: 'deliver', codes: [], effects: ['ledger A-1', 'reverse W-1'] },
  },
  'a forged approval has no effect': {
    script: [ledger, reverse],
    approve: async (bank, request) => `${(await bank.sign(request)).slice(0, -8)}AAAAAAAA`,
    expected: { state: 'deliver', codes: ['APPROVAL_INVALID'], effects: ['ledger A-1'] },
  },
  'a run that waits goes on with the token, and nothing happens twice': {
    script: [ledger, note, reverse],
    resumes: [(bank, request) => bank.sign(request)],
    expected: { state: 'deliver', codes: [], effects: ['ledger A-1', 'note hello', 'reverse W-1'] },
  },
  'a token for another action does not wake it': {
    script: [ledger, reverse],
    resumes: [(bank, request) => otherToken(bank, request), (bank, request) => bank.sign(request)],
    expected: {
      state: 'deliver',
      codes: ['APPROVAL_SCOPE'],
      effects: ['ledger A-1', 'reverse W-1'],
    },
  },
  'a tool that fails is told and logged': {
    script: [broken, ledger],
    expected: { state: 'deliver', codes: ['TOOL_ERROR'], effects: ['ledger A-1'] },
  },
}

/** A token for the same call of another request. */
async function otherToken(bank: Bank, { action, ...request }: ApprovalRequest): Promise<string> {
  const { actionDigest } = await import('../src/index.ts')
  const other = { ...action, request_id: '0190aaaa-0000-7000-8000-00000000beef' }
  return bank.sign({ ...request, action: other, digest: actionDigest(other) })
}

async function play(
  framework: Framework,
  { script, approve, resumes = [] }: Scenario,
): Promise<Told> {
  const bank = await openBank(framework.tools && { tools: framework.tools })
  const body = (run: Parameters<Framework['ask']>[0]): Promise<string> =>
    framework.ask(run, bank.tools, script)
  const ask = approve && {
    approve: async (request: ApprovalRequest) => ({
      type: 'approve' as const,
      tokens: [await approve(bank, request)],
    }),
  }
  let result: Result<string> = await bank.governor.run(
    bank.task,
    { identity, input: null, ...ask },
    body,
  )
  for (const answer of resumes) {
    if (result.outcome !== 'pending') throw new Error(`not pending: ${JSON.stringify(result)}`)
    const tokens = await Promise.all(result.waiting.map((request) => answer(bank, request)))
    result = await bank.governor.resume(result.request_id, bank.task, body, { tokens })
  }
  const checkpoint = await bank.log.seal()
  const text = bank.log.lines.map((line) => `${line}\n`).join('')
  const options = {
    keys: [await bank.log.publicKey()],
    checkpoints: bank.log.checkpoints,
    trusted: checkpoint,
  }
  expect(await verifyLog(text, options)).toMatchObject({ ok: true, faults: [] })
  return {
    state: result.state,
    codes: codesIn(bank.log.lines),
    effects: bank.effects,
    shape: shapeOf(bank.log.lines),
  }
}

/** Every reason code that the log names. */
function codesIn(lines: readonly string[]): string[] {
  const found = lines.flatMap((line) => [...line.matchAll(/"code":"([A-Z_]+)"/g)])
  return [...new Set(found.map((match) => match[1]!))]
}

for (const [name, scenario] of Object.entries(scenarios)) {
  describe(name, () => {
    let reference: Promise<Told> | undefined
    for (const framework of frameworks) {
      test(`UAICP-02 through ${framework.name}`, async () => {
        reference ??= play(frameworks[0]!, scenario)
        const told = await play(framework, scenario)
        expect(told).toMatchObject(scenario.expected)
        expect(told.shape).toEqual((await reference).shape)
      })
    }
  })
}

/** A body that needs approval at its end, run twice: the second time after the approval. */
async function twice(body: (run: Run) => Promise<unknown>): Promise<unknown[]> {
  const made = await kit()
  const high = toolOf(made.world, 'high', { risk: 'write_high_risk', rollback: undoBy('high') })
  const task = taskOf({ tools: [high, toolOf(made.world, 'undo_high')] })
  const seen: unknown[] = []
  const whole = async (run: Run) => {
    seen.push(await body(run))
    await run.call(high, {})
    return 1
  }
  const first = await made.governor.run(task, init, whole)
  if (first.outcome !== 'pending') throw new Error(JSON.stringify(first))
  const tokens = [await made.sign(first.waiting[0]!)]
  const last = await made.restart().resume(first.request_id, task, whole, { tokens })
  expect(last.state).toBe('deliver')
  return seen
}

describe('what a model answered', () => {
  const answer = {
    text: 'hi',
    n: 1.5,
    yes: true,
    none: null,
    at: new Date(7),
    url: new URL('https://x.test/a?b'),
    bytes: new Uint8Array([1, 2, 255]),
    list: [new Date(8), { deep: new Uint8Array([3]) }],
  }

  test('UAICP-02 is recorded with its dates, bytes and addresses, and asked for once', async () => {
    let asked = 0
    const odd = { gone: undefined, fn: () => 1, big: Number.POSITIVE_INFINITY, sign: 1n }
    const error = new TypeError('no')
    const seen = await twice((run) =>
      recordAnswer(run, 'model', async () => {
        asked += 1
        return { ...answer, ...odd, error }
      }),
    )
    const recorded = {
      ...answer,
      big: null,
      sign: null,
      error: { name: 'TypeError', message: 'no' },
    }
    expect(seen).toStrictEqual([recorded, recorded])
    expect(asked).toBe(1)
    // Each reader gets objects of its own, which it may change.
    for (const one of seen as (typeof answer)[]) one.list.push(null as never)
    expect((seen as (typeof answer)[]).map(({ list }) => list.length)).toEqual([3, 3])
  })

  test('comes back as it was, also if the model writes what looks like a record of ours', async () => {
    const forged = [
      { $skein: 'url', value: 'no address' },
      { $skein: 'date', value: 1, more: { $skein: 'bytes', value: 'AAAA' } },
      { $skein: 'object', value: { $skein: 'url', value: 'x' } },
      { $skein: 7 },
    ]
    const answer = { args: { forged }, at: new Date(7) }
    const seen = await twice((run) => recordAnswer(run, 'model', async () => answer))
    expect(seen).toStrictEqual([answer, answer])
  })

  test('UAICP-02 is passed on while it streams, up to the part that may start a call', async () => {
    let asked = 0
    const order: string[] = []
    const seen = await twice(async (run) => {
      const parts = recordStream(
        run,
        'model',
        async function* () {
          asked += 1
          for (const part of ['a', 'b', 'call', 'c']) {
            order.push(`made ${part}`)
            yield part
            // Whoever reads gets the part before the next one is made, if it is not held back.
            for (let turn = 0; turn < 10; turn++) await Promise.resolve()
          }
        },
        (part) => part === 'call',
      )
      const all: string[] = []
      for await (const part of parts) {
        order.push(`got ${part}`)
        all.push(part)
      }
      return all
    })
    expect(seen).toEqual([
      ['a', 'b', 'call', 'c'],
      ['a', 'b', 'call', 'c'],
    ])
    expect(asked).toBe(1)
    expect(order.slice(0, 8)).toEqual([
      'made a',
      'got a',
      'made b',
      'got b',
      'made call',
      'made c',
      'got call',
      'got c',
    ])
  })

  test('UAICP-02 that breaks off in a stream is an error for whoever reads it', async () => {
    const made = await kit()
    const got: unknown[] = []
    const result = await made.governor.run(taskOf({ tools: [] }), init, async (run) => {
      const parts = recordStream(
        run,
        'model',
        async function* () {
          yield 'a'
          throw new Error('cut off')
        },
        () => false,
      )
      for await (const part of parts) got.push(part)
      return 1
    })
    expect(got).toEqual(['a'])
    expect(result).toMatchObject({ reasons: [{ code: 'RUN_ERROR', detail: 'cut off' }] })
  })
})

test('UAICP-02 the id that a framework gives a call is its id in the journal, unless it is none', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read', { run: ({ n }) => n })
  await governor.run(taskOf({ tools: [read] }), init, async (run) => {
    const results: unknown[] = []
    for (const id of ['call_1', '', undefined, '7.1'])
      results.push(await callThrough(run, read, { n: id ?? null }, id))
    expect(results).toEqual(['call_1', '', null, '7.1'])
    return 1
  })
  const calls = (await entries()).filter(({ type }) => type === 'call_settled')
  expect(calls.map(({ data }) => data['call'])).toEqual(['call_1', '1.1', '1.2', '1.3'])
})

test('UAICP-02 each adapter passes the id of a call on, and gives text as text', async () => {
  const { governor, world, entries } = await kit()
  const read = toolOf(world, 'read', { run: ({ n }) => n })
  const results: unknown[] = []
  const result = await governor.run(taskOf({ tools: [read] }), init, async (run) => {
    type Fake = (input: unknown, config?: object) => Promise<string>
    const [graph] = langGraphTools(run, [read], { tool: (fn) => fn as Fake })
    const [agents] = openAiAgentsTools(run, [read])
    const [upp] = uppTools(run, [read])
    const { read: sdk } = aiSdkTools(run, [read])
    for (const n of ['text', { a: 1 }]) {
      const id = (name: string) => `${name}-${typeof n}`
      const callId = id('agents')
      results.push(
        await graph!({ n }, { toolCall: { id: id('graph') } }),
        await graph!({ n }, { toolCallId: id('node') }),
        await agents!.invoke({}, JSON.stringify({ n }), { toolCall: { callId } }),
        await upp!.run({ n }, { toolCallId: id('upp') }),
        await sdk!.execute({ n }, { toolCallId: id('sdk') }),
      )
    }
    return 1
  })
  expect(result.state).toBe('deliver')
  const [text, object, json] = ['text', { a: 1 }, '{"a":1}']
  expect(results).toEqual([...Array<string>(5).fill(text), json, json, json, object, object])
  const names = ['graph', 'node', 'agents', 'upp', 'sdk']
  expect(
    (await entries()).flatMap(({ type, data }) => (type === 'call_settled' ? data['call'] : [])),
  ).toEqual(['string', 'object'].flatMap((type) => names.map((name) => `${name}-${type}`)))
})

test('UAICP-02 a wrapped model is the model but for the members that are replaced', () => {
  class Model {
    #asked = 0
    readonly kind = 'base'
    get name() {
      return `model ${this.#asked}`
    }
    ask(): number {
      return ++this.#asked
    }
    stream(): string {
      return 'stream'
    }
  }
  const model = new Model()
  const wrapped = overlay(model, { ask: () => 'recorded', kind: 'governed' })
  expect(wrapped).toBeInstanceOf(Model)
  expect(wrapped.ask()).toBe('recorded')
  expect([wrapped.kind, wrapped.stream(), wrapped.name]).toEqual(['governed', 'stream', 'model 0'])
  model.ask()
  expect(wrapped.name).toBe('model 1')
  expect(wrapped.constructor).toBe(Model)
  expect((wrapped as { toString: unknown }).toString).not.toBe(Object.prototype.toString)
})
