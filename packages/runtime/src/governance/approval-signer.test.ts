import { describe, expect, test } from 'vitest'
import { rules, standardPolicy } from '@skein/governance'
import { approve, generateKey } from '@skein/governance/approvals'
import { GOVERNOR, kit, requestOf, toolOf, undoBy } from '../../test/governance/governed-kit.ts'
import { createApprovalSigner } from './approval-signer.ts'
import { grantPolicy, type ToolGrant } from './grant-policy.ts'
import { memoryGovernanceKeys } from './governance-keys.ts'

const high = toolOf('high', { risk: 'write_high_risk', rollback: undoBy('high') })
const other = toolOf('other', { risk: 'write_high_risk', rollback: undoBy('high') })
const tools = [high, other, toolOf('undo_high', { risk: 'write_low_risk' })]
const pay = { id: 'pay', tool: 'high' }
const result = { type: 'result', value: 1 } as const

describe('signing', () => {
  test('neither the acting agent nor whom policy excludes gets a token', async () => {
    const fourEyes = rules([{ when: () => true, effect: 'review', fourEyes: true }])
    const made = await kit({ tools, options: { policy: fourEyes } })
    const asked = requestOf(await made.admit(await made.open(), pay))
    for (const by of ['clerk', 'uma']) {
      await expect(made.signer.signApproval(asked, { by })).rejects.toMatchObject({
        code: 'ANSWER_INVALID',
      })
    }
    await expect(made.sign(asked, 'pat')).resolves.toEqual(expect.any(String))
  })

  test('a request that is over, or shows another action than its digest, is not signed', async () => {
    const made = await kit({ tools })
    const asked = requestOf(await made.admit(await made.open(), pay))
    const changed = { ...asked, action: { ...asked.action, tool: 'harmless' } }
    await expect(made.sign(changed)).rejects.toMatchObject({ code: 'APPROVAL_REQUEST_INVALID' })
    made.clock.advance(6 * 24 * 3_600_000)
    await expect(made.sign(asked)).resolves.toEqual(expect.any(String))
    made.clock.advance(25 * 3_600_000)
    await expect(made.sign(asked)).rejects.toMatchObject({ code: 'REQUEST_EXPIRED' })
  })

  test('a token lives an hour, or as long as was said', async () => {
    const made = await kit({ tools })
    const governor = await made.open()
    const asked = requestOf(await made.admit(governor, pay))
    const short = await made.signer.signApproval(asked, { by: 'pat', ttlMs: 60_000 })
    const usual = await made.signer.signApproval(asked, { by: 'pat' })
    made.clock.advance(50 * 60_000)
    expect(await made.admit(governor, pay, short)).toMatchObject({
      rejected: { code: 'APPROVAL_EXPIRED' },
    })
    expect(await made.admit(governor, pay, usual)).toMatchObject({ type: 'allow' })
  })

  test('another issuer’s tokens count where it is named; it cannot speak as the runtime', async () => {
    const { publicJwk, privateJwk } = await generateKey()
    const bank = { keys: [publicJwk], may: () => true }
    const made = await kit({ tools })
    const { keys, clock, ids } = made
    const signer = createApprovalSigner({
      id: GOVERNOR,
      keys,
      clock,
      ids,
      issuers: { bank, runtime: bank },
    })
    const governor = await made.restart({ signer }).open(made.session)
    const asked = requestOf(await made.admit(governor, pay))
    const signing = { audience: GOVERNOR, approver: 'ben', key: privateJwk, ttlMs: 60_000, clock }
    const posing = await approve(asked, { ...signing, issuer: 'runtime' })
    expect(await made.admit(governor, pay, posing)).toMatchObject({
      rejected: { code: 'APPROVAL_INVALID' },
    })
    const token = await approve(asked, { ...signing, issuer: 'bank' })
    expect(await made.admit(governor, pay, token)).toMatchObject({ type: 'allow' })
  })

  test('who may approve what is the application’s to say', async () => {
    const made = await kit({ tools })
    const { keys, clock, ids } = made
    const may = ({ tool }: { tool: string }, by: string): boolean => tool === 'high' && by === 'ana'
    const signer = createApprovalSigner({ id: GOVERNOR, keys, clock, ids, may })
    const governor = await made.restart({ signer }).open(made.session)
    const asked = requestOf(await made.admit(governor, pay))
    expect(await made.admit(governor, pay, await made.sign(asked, 'pat'))).toMatchObject({
      rejected: { code: 'APPROVAL_SCOPE' },
    })
    expect(await made.admit(governor, pay, await made.sign(asked, 'ana'))).toMatchObject({
      type: 'allow',
    })
  })
})

describe('a grant of a tool in a thread', () => {
  async function granted(changes: Partial<ToolGrant> = {}) {
    const grants: ToolGrant[] = []
    const clock = { now: () => made.clock.now() }
    const policy = [
      standardPolicy,
      grantPolicy({ clock, find: ({ tool }) => grants.find((one) => one.tool === tool) }),
    ]
    const made = await kit({ tools, options: { policy } })
    const expiresAt = made.clock.now() + 3_600_000
    const wanted = { threadId: 'thread-1', tool: 'high', by: 'pat', expiresAt, ...changes }
    grants.push(await made.signer.signToolGrant(wanted))
    return { ...made, grants }
  }

  test('answers for a person, again and again, and the log says who', async () => {
    const made = await granted()
    const governor = await made.open()
    for (const id of ['a', 'b']) {
      expect(await made.admit(governor, { id, tool: 'high' })).toMatchObject({ type: 'allow' })
      await governor.settle(id, result, 't')
    }
    expect(await made.admit(governor, { id: 'c', tool: 'other' })).toMatchObject({ type: 'review' })
    await made.commit(governor)
    const answers = (await made.entries()).filter(({ type }) => type === 'review_answered')
    expect(answers).toMatchObject([
      { data: { answer: 'approved', approvers: [{ type: 'human', id: 'pat' }] } },
      { data: { answer: 'approved', approvers: [{ type: 'human', id: 'pat' }] } },
    ])
    expect(await made.verify()).toMatchObject({ ok: true })
  })

  test('is of no use in another thread, for another tool, by a stranger, or when it is over', async () => {
    const elsewhere = await granted({ threadId: 'thread-2' })
    expect(await elsewhere.admit(await elsewhere.open(), pay)).toMatchObject({
      type: 'review',
      rejected: { code: 'APPROVAL_SCOPE' },
    })
    const made = await granted()
    const [grant] = made.grants as [ToolGrant]
    made.grants.push({ ...grant, tool: 'other' })
    expect(await made.admit(await made.open(), { id: 'x', tool: 'other' })).toMatchObject({
      rejected: { code: 'APPROVAL_SCOPE' },
    })
    const { clock, ids } = made
    const stranger = createApprovalSigner({
      id: GOVERNOR,
      keys: memoryGovernanceKeys(),
      clock,
      ids,
    })
    made.grants.unshift(await stranger.signToolGrant(grant))
    expect(await made.admit(await made.open(), pay)).toMatchObject({
      rejected: { code: 'APPROVAL_INVALID' },
    })
    made.grants.shift()
    made.clock.advance(2 * 3_600_000)
    const over = await made.admit(await made.open(), { ...pay, id: 'late' })
    expect(over).toMatchObject({ type: 'review' })
    expect(over).not.toHaveProperty('rejected')
    // A time that was changed beside the signed text changes nothing.
    made.grants[0] = { ...grant, expiresAt: Number.MAX_SAFE_INTEGER }
    expect(await made.admit(await made.open(), { ...pay, id: 'later' })).toMatchObject({
      rejected: { code: 'APPROVAL_EXPIRED' },
    })
  })

  test('is not the agent’s own to give, and not for longer than a day', async () => {
    const made = await granted({ by: 'clerk' })
    expect(await made.admit(await made.open(), pay)).toMatchObject({
      rejected: { code: 'APPROVAL_SELF' },
    })
    const grant = { threadId: 'thread-1', tool: 'high', by: 'pat' }
    for (const ms of [0, -1, 25 * 3_600_000, Number.NaN]) {
      const wanted = { ...grant, expiresAt: made.clock.now() + ms }
      await expect(made.signer.signToolGrant(wanted)).rejects.toMatchObject({
        code: 'ANSWER_INVALID',
      })
    }
  })

  test('does not beat a denial', async () => {
    const made = await granted()
    const never = rules([{ when: () => true, effect: 'deny' }], { id: 'never' })
    const policy = [never, grantPolicy({ find: () => made.grants[0], clock: made.clock })]
    const governor = await made.restart({ policy }).open(made.session)
    expect(await made.admit(governor, pay)).toMatchObject({ type: 'deny' })
  })
})
