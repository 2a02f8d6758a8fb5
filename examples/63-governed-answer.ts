/**
 * The smallest governed run: an answer is delivered if the ledger was read for it. A guess is not.
 *
 * Prints:
 *
 *     deliver 250
 *     fail_safe EVIDENCE_MISSING
 */

// #region program
import { defineTaskClass, governed, governor } from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import { identity, ledgerSnapshot } from './wire-bank.ts'

const ledger = governed(ledgerSnapshot, { risk: 'read_only' })
const answer = defineTaskClass({
  name: 'answer',
  tools: [ledger],
  needs: [{ type: 'tool_result', source: 'ledger_snapshot' }],
  verifiers: [],
})
const gov = governor({ id: 'bank.example', audit: memoryLog() })

const read = await gov.run(answer, { identity, input: {} }, async (run) => {
  const { result } = await run.call(ledger, {})
  return result.balance
})
console.log(read.state, read.state === 'deliver' ? read.value : '')

const guess = await gov.run(answer, { identity, input: {} }, async () => 1_000_000)
console.log(guess.state, guess.state === 'fail_safe' ? guess.reasons[0]?.code : '')
// #endregion program
