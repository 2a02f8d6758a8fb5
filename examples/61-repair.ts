/**
 * A model claims more than it looked up. The verifier says no, the run repairs itself once, and the
 * second answer, which the evidence supports, is delivered. A third chance does not exist.
 *
 * Prints:
 *
 *     attempt 1: streams "250 euros, I think" (unverified)
 *     attempt 2, because EVIDENCE_MISSING tool_result:ledger_snapshot, VERIFICATION_FAILED said-is-seen
 *     deliver {"answer":"250 euros"}
 *     fail_safe EVIDENCE_MISSING, VERIFICATION_FAILED, REPAIR_EXHAUSTED
 *     5 chunks were streamed to the second user, all void: true
 */

// #region program
import { defineTaskClass, defineVerifier, governed, governor, type Run } from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import * as bank from './wire-bank.ts'

const ledger = governed(bank.ledgerSnapshot, { risk: 'read_only' })
const saidIsSeen = defineVerifier({
  id: 'said-is-seen',
  timeoutMs: 500,
  check: ([snapshot], { candidate }) => {
    const { balance } = (snapshot?.payload ?? {}) as { balance?: number }
    const isSeen = JSON.stringify(candidate).includes(`${balance} euros"`)
    return [{ check_id: 'balance', result: isSeen ? 'pass' : 'fail' }]
  },
})
const question = defineTaskClass({
  name: 'balance',
  tools: [ledger],
  needs: [{ type: 'tool_result', source: 'ledger_snapshot' }],
  verifiers: [saidIsSeen],
  repair: { max: 1 },
})
const gov = governor({ id: 'bank.example', audit: memoryLog() })
const init = { identity: bank.identity, input: 'What is my balance?' }

const result = await gov.run(question, init, async (run: Run) => {
  if (run.attempt === 1) {
    run.chunk('250 euros, I think')
    console.log('attempt 1: streams "250 euros, I think" (unverified)')
    return { answer: '250 euros, I think' }
  }
  const why = run.why.map(({ code, subject }) => `${code} ${subject}`)
  console.log(`attempt ${run.attempt}, because ${why.join(', ')}`)
  const { balance } = (await run.call(ledger, {})).result
  return { answer: `${balance} euros` }
})
console.log(result.state, JSON.stringify(result.state === 'deliver' ? result.value : result))

const chunks: boolean[] = []
const stubborn = await gov.run(
  question,
  { ...init, onChunk: ({ streaming }) => chunks.push(streaming?.['uaicp:verified'] === false) },
  async (run) => {
    run.chunk('It is ')
    run.chunk('a lot')
    return { answer: 'a lot' }
  },
)
const codes = stubborn.state === 'fail_safe' ? stubborn.reasons.map(({ code }) => code) : []
console.log(stubborn.state, codes.join(', '))
console.log(
  `${chunks.length} chunks were streamed to the second user, all void: ${!chunks.includes(false)}`,
)
// #endregion program
