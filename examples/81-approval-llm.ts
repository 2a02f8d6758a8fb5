/**
 * `llm()` inside a governed run, with its model recorded: a refund waits for a person, the process ends, and
 * another one continues with the same call.
 *
 * Prints:
 *
 *     process 1 waits for a person: refund {"order":"A-7"}; refunded: nothing
 *     process 2: deliver "Refunded A-7."; refunded: A-7; models asked: 1
 */
import { llm } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import type { ApprovalRequest, Run } from '@skein/governance'
import { defineTaskClass, governed, governor, standardPolicy } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'
import { uppModel, uppTools } from '@skein/governance/upp'
import { inTwoProcesses } from './two-processes.ts'

const shop = await inTwoProcesses(import.meta.filename)
const { audit, payloads } = shop

// #region task
interface Order {
  readonly order: string
}
const parameters = {
  type: 'object',
  properties: { order: { type: 'string' } },
  required: ['order'],
}
const run = async ({ order }: Order) => ({ charged: order })
const charge = governed(
  { name: 'charge', description: 'Charges an order again.', parameters, run },
  { risk: 'write_low_risk' },
)
const refund = governed(
  {
    name: 'refund',
    description: 'Pays an order back.',
    parameters,
    run: async ({ order }: Order) => shop.refund(order),
  },
  {
    risk: 'write_high_risk',
    rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
  },
)
const task = defineTaskClass({
  name: 'refunds',
  tools: [refund, charge],
  needs: [],
  verifiers: [],
})
// #endregion task

const model = scripted(({ messages }) => {
  const told = JSON.stringify(messages).includes('refunded')
  const id = `call_${crypto.randomUUID()}`
  return told ? says('Refunded A-7.') : calls('refund', { order: 'A-7' }, { id })
})

// #region body
async function answer(governedRun: Run): Promise<string> {
  const clerk = llm({
    model: uppModel(governedRun, model),
    tools: uppTools(governedRun, task.tools),
  })
  const turn = await clerk.generate('Refund A-7, please.')
  return turn.text
}
// #endregion body

const { publicJwk, privateJwk: key } = await generateKey()
const audience = 'shop.example'
const issuers = { shop: { keys: [publicJwk], may: () => true } }
const desk = approvals({ audience, issuers, spent: memorySpent() })
const gov = governor({ id: audience, audit, payloads, policy: standardPolicy, approvals: desk })
const identity = { agent_id: 'clerk', owner_id: 'shop', control_class: 'human-supervised' } as const

if (shop.number === 1) {
  // #region ask
  const result = await gov.run(task, { identity, input: null }, answer)
  if (result.outcome !== 'pending') throw new Error('a person should have been asked')
  shop.save('waiting', JSON.stringify(result.waiting))
  // #endregion ask
  const asked = result.waiting.map(({ action }) => `${action.tool} ${JSON.stringify(action.args)}`)
  const refunded = shop.refunds() || 'nothing'
  console.log(`process 1 waits for a person: ${asked.join()}; refunded: ${refunded}`)
} else {
  // #region approve
  const [request] = JSON.parse(shop.load('waiting')) as ApprovalRequest[]
  if (!request) throw new Error('nothing waits')
  const person = { audience, issuer: 'shop', approver: 'pat', key, ttlMs: 60_000 }
  const tokens = [await approve(request, person)]
  const done = await gov.resume(request.action.request_id, task, answer, { tokens })
  // #endregion approve
  const value = done.state === 'deliver' ? `"${done.value}"` : ''
  console.log(
    `process 2: ${done.state} ${value}; refunded: ${shop.refunds()}; models asked: ${model.requests.length}`,
  )
}
await audit.close()
