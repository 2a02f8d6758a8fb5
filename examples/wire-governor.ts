/** The bank with its tools governed: a task with evidence and a verifier, a governor, and a person who signs. */
import {
  defineTaskClass,
  defineVerifier,
  governed,
  governor,
  standardPolicy,
} from '@skein/governance'
import type { ApprovalRequest, Governor, TaskClass } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'
import { memoryLog } from '@skein/governance/audit'
import * as bank from './wire-bank.ts'

const ledger = governed(bank.ledgerSnapshot, { risk: 'read_only' })
const reinstate = governed(bank.reinstateWire, { risk: 'write_low_risk' })
const reverse = governed(bank.reverseWire, {
  risk: 'write_high_risk',
  rollback: ({ wire }) => ({ type: 'tool_call', target: 'reinstate_wire', payload: { wire } }),
})
const oneReversal = defineVerifier({
  id: 'one-reversal',
  timeoutMs: 500,
  check: (all) => {
    const isOne = all.filter(({ actor }) => actor === 'tool:reverse_wire').length === 1
    return [{ check_id: 'exactly-one', result: isOne ? 'pass' : 'fail' }]
  },
})

/** An answer is delivered only if the ledger was read and one wire was reversed. */
export const task: TaskClass = defineTaskClass({
  name: 'wire-reversal',
  tools: [ledger, reverse, reinstate],
  needs: [{ type: 'tool_result', source: 'ledger_snapshot' }],
  verifiers: [oneReversal],
})

const audience = 'bank.example'
const { publicJwk, privateJwk: key } = await generateKey()
const issuers = { bank: { keys: [publicJwk], may: () => true } }
const desk = approvals({ audience, issuers, spent: memorySpent() })

export const gov: Governor = governor({
  id: audience,
  audit: memoryLog(),
  policy: standardPolicy,
  approvals: desk,
})

/** In an application: a page where a person reads what waits and signs it. */
export function sign(waiting: readonly ApprovalRequest[]): Promise<string[]> {
  for (const { action } of waiting)
    console.log(`a person signs: ${action.tool} ${JSON.stringify(action.args)}`)
  const person = { audience, issuer: 'bank', approver: 'pat', key, ttlMs: 60_000 }
  return Promise.all(waiting.map((request) => approve(request, person)))
}
