import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  defineTaskClass,
  type ApprovalAnswer,
  type ApprovalRequest,
  type Run,
} from '../src/index.ts'
import { verifyLog } from '../src/audit/verify-log.ts'
import { identity, openBank, type Bank } from './bank.ts'

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
