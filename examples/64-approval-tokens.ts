/**
 * An approval is a signed token for exactly one action: edited, forged, self-made or used again, it does nothing.
 *
 * Prints:
 *
 *     edited arguments: APPROVAL_SCOPE
 *     someone else's key: APPROVAL_INVALID
 *     the agent itself: APPROVAL_SELF
 *     one of two people: APPROVAL_REQUIRED
 *     both: ok, pat and kim
 *     both again: APPROVAL_REPLAYED
 */

// #region program
import { actionDigest, hashJson, type Action, type ApprovalRequest } from '@skein/governance'
import { approvals, approve, generateKey, memorySpent } from '@skein/governance/approvals'

const { publicJwk, privateJwk: key } = await generateKey()
const desk = approvals({
  audience: 'bank.example',
  issuers: { bank: { keys: [publicJwk], may: (action) => action.tool === 'reverse_wire' } },
  spent: memorySpent(),
})

// What a governor asks when a call needs two people. It can be stored, sent and shown.
const args = { wire: 'W-1' }
const action: Action = {
  request_id: '01890a5d-ac96-774b-bcce-b302099a8057',
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  call_id: 'c1',
  task: 'wire-reversal',
  tool: 'reverse_wire',
  risk: 'write_high_risk',
  args,
  args_hash: hashJson(args),
  identity: { agent_id: 'clerk', owner_id: 'bank', control_class: 'human-supervised' },
  depth: 0,
  policy_hash: hashJson('policy'),
}
const expires_at = new Date(Date.now() + 600_000).toISOString()
const request: ApprovalRequest = {
  id: 'r1',
  digest: actionDigest(action),
  action,
  expires_at,
  quorum: 2,
  excluded: ['clerk'],
}

// Runs wherever the person is. It needs the request and a key, and no governor.
const sign = (approver: string, asked = request, signer = key): Promise<string> =>
  approve(asked, {
    audience: 'bank.example',
    issuer: 'bank',
    approver,
    key: signer,
    ttlMs: 60_000,
  })

async function show(what: string, ...tokens: string[]): Promise<void> {
  const redeemed = await desk.redeem(tokens, request)
  const told = redeemed.ok
    ? `ok, ${redeemed.approvers.map(({ id }) => id).join(' and ')}`
    : redeemed.reason.code
  console.log(`${what}: ${told}`)
}

const edited: Action = { ...action, args: { wire: 'W-2' }, args_hash: hashJson({ wire: 'W-2' }) }
await show(
  'edited arguments',
  await sign('pat', { ...request, action: edited, digest: actionDigest(edited) }),
)
await show("someone else's key", await sign('pat', request, (await generateKey()).privateJwk))
await show('the agent itself', await sign('clerk'))
const [pat, kim] = [await sign('pat'), await sign('kim')]
await show('one of two people', pat)
await show('both', pat, kim)
await show('both again', pat, kim)
// #endregion program
