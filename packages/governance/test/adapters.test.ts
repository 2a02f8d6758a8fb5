import { describe, expect, test } from 'vitest'
import type { ApprovalRequest, Result } from '../src/index.ts'
import { verifyLog } from '../src/audit/verify-log.ts'
import { identity, openBank, shapeOf, type Bank } from './bank.ts'
import { frameworks, type Framework, type ScriptedCall } from './frameworks.ts'

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
