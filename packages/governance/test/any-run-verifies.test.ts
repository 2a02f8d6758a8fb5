import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  defineTaskClass,
  type ApprovalAnswer,
  type ApprovalRequest,
  type Run,
} from '../src/index.ts'
import { memoryLog } from '../src/audit/memory-log.ts'
import type { Hash } from '../src/contract/envelope.ts'
import { verifyLog } from '../src/audit/verify-log.ts'
import { identity, openBank, type Bank } from './bank.ts'
import { entriesOf, steps as written } from './sample-log.ts'

type Step =
  | { readonly type: 'call'; readonly tool: string; readonly value: string; readonly name?: string }
  | { readonly type: 'child'; readonly steps: readonly Step[] }
  | Other

interface Other {
  readonly type: 'chunk' | 'plan' | 'step' | 'throw'
}

type Answer = 'approve' | 'deny' | 'forge' | 'wait'

const call: fc.Arbitrary<Step> = fc.record(
  {
    type: fc.constant('call' as const),
    tool: fc.constantFrom('ledger', 'ledger', 'note', 'reverse', 'broken'),
    value: fc.constantFrom('a', 'b', 'forbidden'),
    name: fc.constantFrom('x', 'y'),
  },
  { requiredKeys: ['type', 'tool', 'value'] },
)
const other: fc.Arbitrary<Step> = fc.record({
  type: fc.constantFrom('chunk', 'plan', 'step', 'throw'),
})
const { steps } = fc.letrec<{ steps: Step[]; step: Step }>((tie) => ({
  steps: fc.array(tie('step'), { maxLength: 6 }),
  step: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { weight: 6, arbitrary: call },
    { weight: 2, arbitrary: other },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('child' as const), steps: tie('steps') }),
    },
  ),
}))

const fields: Record<string, string> = {
  ledger: 'account',
  note: 'text',
  reverse: 'wire',
  broken: 'x',
}

/** A body that takes the steps and, as frameworks do, goes on after most failures. */
async function take(
  run: Run,
  list: readonly Step[],
  bank: Bank,
  task: Bank['task'],
): Promise<string> {
  for (const step of list) {
    if (step.type === 'call') {
      const tool = bank.tools.find(({ name }) => name === step.tool)!
      const args = { [fields[step.tool]!]: step.value }
      const options = step.name === undefined ? {} : { id: step.name }
      await run.call(tool, args as never, options).catch(() => undefined)
    } else if (step.type === 'child') {
      const below = (child: Run): Promise<string> => take(child, step.steps, bank, task)
      await run.child(task, {}, below).catch(() => '')
    } else if (step.type === 'throw') throw new Error('the body failed')
    else if (step.type === 'chunk') run.chunk('so far')
    else if (step.type === 'plan') await run.plan({ next: 'unknown' })
    else await run.step('ask', () => 'answer')
  }
  return 'done'
}

async function answerTo(
  bank: Bank,
  answer: Answer,
  asked: ApprovalRequest,
): Promise<ApprovalAnswer> {
  if (answer === 'wait') return { type: 'wait' }
  if (answer === 'deny') return { type: 'deny', reason: 'no' }
  const token = await bank.sign(asked)
  return { type: 'approve', tokens: [answer === 'forge' ? `${token.slice(0, -4)}AAAA` : token] }
}

test('UAICP-27 the log of any run, however it goes, verifies as possible and complete', async () => {
  const numRuns = process.env['SKEIN_DEEP'] ? 5000 : 60
  const ends = new Map<string, number>()
  const answers = fc.array(fc.constantFrom<Answer>('approve', 'approve', 'deny', 'forge', 'wait'), {
    minLength: 1,
    maxLength: 4,
  })
  await fc.assert(
    fc.asyncProperty(steps, answers, fc.nat({ max: 2 }), async (list, given, repairs) => {
      const bank = await openBank()
      const task = defineTaskClass({ ...bank.task, repair: { max: repairs } })
      let next = 0
      const approve = (asked: ApprovalRequest) =>
        answerTo(bank, given[next++ % given.length]!, asked)
      const body = (run: Run) => take(run, list, bank, task)
      let result = await bank.governor.run(
        task,
        { identity, input: null, approve, onChunk: () => undefined },
        body,
      )
      if (result.outcome === 'pending') {
        const tokens = await Promise.all(result.waiting.map((asked) => bank.sign(asked)))
        result = await bank.governor.resume(result.request_id, task, body, { tokens })
      }
      ends.set(result.state, (ends.get(result.state) ?? 0) + 1)
      const trusted = await bank.log.seal()
      const verdict = await verifyLog(bank.log.lines.map((line) => `${line}\n`).join(''), {
        keys: [await bank.log.publicKey()],
        checkpoints: bank.log.checkpoints,
        trusted,
      })
      expect(verdict).toMatchObject({ ok: true, faults: [] })
    }),
    { seed: 20260102, numRuns },
  )
  if (process.env['SKEIN_DEEP'])
    console.log(`${numRuns} random runs, every log verified: ${JSON.stringify([...ends])}`)
  expect([...ends.keys()].sort()).toEqual(expect.arrayContaining(['deliver', 'fail_safe']))
}, 300_000)

type Line = (typeof written)[number]

describe('a log that no run can have written', () => {
  const [open, plan, execute, read, ask, approve, start, end, verify, verified, deliver] =
    written as unknown as [Line, Line, Line, Line, Line, Line, Line, Line, Line, Line, Line]
  const { data } = deliver.event as unknown as { data: { hash: Hash; reports: string[] } }
  const low = { call: '0.9', tool: 'w', risk: 'write_low_risk', args_hash: data.hash } as const
  const policy_hash = data.hash
  const inDoubt: Line[] = [
    { state: 'execute', event: { type: 'call_started', data: { ...low, policy_hash } } },
    { state: 'execute', event: { type: 'call_settled', data: { ...low, effect: 'in_doubt' } } },
  ]
  const child = { child: '1.c1', request_id: 'r', trace_id: 't', task: 'x' }
  const opened: Line = { state: 'execute', event: { type: 'child_opened', data: child } }
  const settled: Line = {
    state: 'execute',
    event: { type: 'child_settled', data: { ...child, calls: 0, effects: [] } },
  }
  const onRead: Line = {
    ...deliver,
    event: { type: 'delivered', data: { ...data, evidence: ['e1'] } },
  }
  const none = { reasons: [], missing: [], undo: [] }
  const ended: Line = {
    state: 'fail_safe',
    outcome: 'uncertain',
    event: { type: 'failed_safe', data: none },
  }
  const failed: Line[] = [
    open,
    plan,
    { ...execute, state: 'fail_safe', outcome: 'uncertain' },
    ended,
  ]
  const undo: Line = {
    state: 'fail_safe',
    event: { type: 'undo_started', data: { request_id: 'r', call: 'c' } },
  }
  const write = [ask, approve, start, end]
  const check = [verify, verified]
  const found = async (
    list: readonly Line[],
    change = (line: string, _index: number) => line,
  ): Promise<(string | undefined)[]> => {
    const log = memoryLog({ origin: 'test' })
    for (const [index, entry] of entriesOf(1, list).entries())
      log.append({ ...entry, line: change(entry.line, index) })
    const options = { keys: [await log.publicKey()], checkpoints: [await log.seal()] }
    const { faults } = await verifyLog(log.lines.map((line) => `${line}\n`).join(''), options)
    return faults.map(({ kind, detail }) => (kind === 'semantics' ? detail : kind))
  }

  test.each<[string, readonly Line[]]>([
    ['a delivery', [open, plan, execute, read, ...write, ...check, deliver]],
    ['a fail-safe', failed],
    [
      'a delivery beside a call in doubt',
      [open, plan, execute, ...inDoubt, read, ...check, onRead],
    ],
    ['a child that ended', [open, plan, execute, opened, settled, read, ...check, onRead]],
  ])('UAICP-35 is not %s', async (_name, list) => {
    expect(await found(list)).toEqual([])
  })

  test.each<[string, readonly Line[]]>([
    ['a request that does not begin at intake', [{ ...open, state: 'execute' }]],
    // After the end of its request, no number is right.
    ['entries out of order', [...failed, undo]],
    [
      'a fail-safe that is not uncertain',
      [...failed.slice(0, 3), { ...ended, outcome: 'failure' }],
    ],
    [
      'a delivery on a report that did not pass',
      [
        open,
        plan,
        execute,
        read,
        ...check,
        {
          ...onRead,
          event: { type: 'delivered', data: { ...data, evidence: ['e1'], reports: ['p2'] } },
        },
      ],
    ],
    ['a delivery while a child runs', [open, plan, execute, opened, read, ...check, onRead]],
    [
      'a delivery while a call runs',
      [open, plan, execute, ...inDoubt, read, ask, approve, start, ...check, onRead],
    ],
    [
      'an approval of another action',
      [
        open,
        plan,
        execute,
        ask,
        approve,
        {
          ...start,
          event: {
            ...start.event,
            data: { ...start.event.data, digest: `sha256:${'cd'.repeat(32)}` },
          },
        } as Line,
      ],
    ],
  ])('UAICP-35 is %s', async (detail, list) => {
    expect(await found(list)).toEqual([detail])
  })

  test('UAICP-35 is an entry of an attempt that is over', async () => {
    const later = (line: string, index: number): string =>
      index === 3 ? line.replace('"uaicp:attempt":1', '"uaicp:attempt":2') : line
    expect(await found([open, plan, execute, read], later)).toEqual([])
    expect(await found([open, plan, execute, read, ask], later)).toEqual(['an earlier attempt'])
  })
})
