/**
 * Reverses a wire transfer: the ledger is read, a person approves, the log proves it.
 *
 * Prints:
 *
 *     waiting: reverse_wire {"wire":"W-1"}
 *     deliver {"balance":250,"ref":"R-W-1"}
 *     resumed again, reversed: W-1; log ok: true
 */
import { defineTaskClass, defineVerifier, governed, governor } from '@skein/governance'
import { standardPolicy, type Run } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'
import { memoryLog, verifyLog } from '@skein/governance/audit'
import * as bank from './wire-bank.ts'

const ledger = governed(bank.ledgerSnapshot, { risk: 'read_only' })
const reinstate = governed(bank.reinstateWire, { risk: 'write_low_risk' })
const reverse = governed(bank.reverseWire, {
  risk: 'write_high_risk',
  rollback: ({ wire }) => ({ type: 'tool_call', target: 'reinstate_wire', payload: { wire } }),
  probe: ({ wire }) => bank.reversed.includes(wire),
})
const oneReversal = defineVerifier({
  id: 'one-reversal',
  timeoutMs: 500,
  check: (all) => {
    const isOne = all.filter(({ actor }) => actor === 'tool:reverse_wire').length === 1
    return [{ check_id: 'exactly-one', result: isOne ? 'pass' : 'fail' }]
  },
})
const reversal = defineTaskClass({
  name: 'wire-reversal',
  tools: [ledger, reverse, reinstate],
  needs: [{ type: 'tool_result', source: 'ledger_snapshot', maxAgeMs: 60_000 }],
  verifiers: [oneReversal],
})

const { publicJwk, privateJwk: key } = await generateKey()
const audience = 'bank.example'
const issuers = { bank: { keys: [publicJwk], alg: 'Ed25519', may: () => true } } as const
const desk = approvals({ audience, issuers, spent: memorySpent() })
const log = memoryLog()
const gov = governor({ id: audience, audit: log, policy: standardPolicy, approvals: desk })

const body = async (run: Run) => {
  const { balance } = (await run.call(ledger, {})).result
  return { balance, ref: (await run.call(reverse, { wire: 'W-1' })).result.ref }
}
const first = await gov.run(reversal, { identity: bank.identity, input: { wire: 'W-1' } }, body)
if (first.outcome !== 'pending') throw new Error('a person should have been asked')
const request = first.waiting[0]!
console.log(`waiting: ${request.action.tool} ${JSON.stringify(request.action.args)}`)
// Somewhere else: a person reads the request and signs it.
const person = { audience, issuer: 'bank', approver: 'pat', key, ttlMs: 60_000 }
const tokens = [await approve(request, person)]
const done = await gov.resume(first.request_id, reversal, body, { tokens })
console.log(done.state, JSON.stringify(done.state === 'deliver' ? done.value : done))
await gov.resume(first.request_id, reversal, body, { tokens })
const { ok } = await verifyLog(log.lines.join('\n') + '\n', { keys: [await log.publicKey()] })
console.log(`resumed again, reversed: ${bank.reversed.join()}; log ok: ${ok}`)
