/**
 * Three reversals, then a step fails. What was done is taken back, the last first; one inversion does
 * not work, and the result says so instead of hiding it. A crash in the middle would change nothing:
 * `recover` continues where the journal ends.
 *
 * Prints:
 *
 *     reversed: W-1, W-2, W-3
 *     fail_safe: RUN_ERROR, ROLLBACK_FAILED
 *     reverse_wire of W-3: done
 *     reverse_wire of W-2: failed (the ledger is locked)
 *     reverse_wire of W-1: done
 *     still reversed: W-2
 *     in the log: 3 intents, 3 undo steps, last entry uncertain
 */

// #region program
import { defineTaskClass, governed, governor, standardPolicy } from '@skein/governance'
import { memoryLog } from '@skein/governance/audit'
import * as bank from './wire-bank.ts'

// #region tools
const reverse = governed(bank.reverseWire, {
  risk: 'write_low_risk',
  rollback: ({ wire }) => ({ type: 'tool_call', target: 'reinstate_wire', payload: { wire } }),
})
const lockedFor = 'W-2'
const run = async (wire: bank.Wire): Promise<{ reinstated: string }> => {
  if (wire.wire === lockedFor) throw new Error('the ledger is locked')
  return bank.reinstateWire.run(wire)
}
const reinstate = governed({ ...bank.reinstateWire, run }, { risk: 'write_low_risk' })
const batch = defineTaskClass({
  name: 'batch',
  tools: [reverse, reinstate],
  needs: [],
  verifiers: [],
})
// #endregion tools

const log = memoryLog()
const gov = governor({ id: 'bank.example', audit: log, policy: standardPolicy })
// #region run
const result = await gov.run(batch, { identity: bank.identity, input: {} }, async (run) => {
  for (const wire of ['W-1', 'W-2', 'W-3']) await run.call(reverse, { wire })
  console.log(`reversed: ${bank.reversed.join(', ')}`)
  throw new Error('the customer hung up')
})

if (result.state !== 'fail_safe') throw new Error('expected to fail safe')
console.log(`fail_safe: ${result.reasons.map(({ code }) => code).join(', ')}`)
for (const { tool, action, status, error } of result.undo) {
  const { wire } = (action?.payload ?? {}) as { wire?: string }
  console.log(`${tool} of ${wire}: ${status}${error ? ` (${error})` : ''}`)
}
// #endregion run
console.log(`still reversed: ${bank.reversed.join(', ')}`)
const events = log.lines.map((line) => /"uaicp:event":"(\w+)"/.exec(line)?.[1])
const count = (name: string): number => events.filter((event) => event === name).length
const isUncertain = log.lines.at(-1)?.includes('"outcome":"uncertain"')
console.log(
  `in the log: ${count('call_started')} intents, ${count('undo_settled')} undo steps, ` +
    `last entry ${isUncertain ? 'uncertain' : 'certain'}`,
)
// #endregion program
