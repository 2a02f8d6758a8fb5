import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifyLog } from '@skein/governance/audit'
import { createThread, kit, requestOf, toolOf, undoBy } from '../../test/governance/governed-kit.ts'
import type { AuditExport } from '../contract/audit-export.ts'
import { exportAudit, verifyAudit } from './audit-export.ts'
import { memoryGovernanceKeys } from './governance-keys.ts'

const high = toolOf('high', { risk: 'write_high_risk', rollback: undoBy('high') })
const tools = [high, toolOf('read'), toolOf('undo_high', { risk: 'write_low_risk' })]
const result = { type: 'result', value: 1 } as const

/** A thread with a child, both with finished work, their entries one among the other. */
async function family() {
  const made = await kit({ tools })
  await createThread(made.store, 'thread-2', 'thread-1')
  const parent = await made.open()
  await made.commit(parent)
  const earlier = await exportAudit(made.store, 'thread-1', made.keys)
  const child = await made.open({ threadId: 'thread-2' })
  await made.admit(child, { id: 'r', tool: 'read' })
  const pay = { id: 'pay', tool: 'high' }
  const token = await made.sign(requestOf(await made.admit(parent, pay)))
  await child.settle('r', result, 't')
  await made.commit(child)
  await made.admit(parent, pay, token)
  await child.deliver('child')
  await made.commit(child)
  await parent.settle('pay', result, 't')
  await parent.deliver('parent')
  await made.commit(parent)
  const exported = await exportAudit(made.store, 'thread-1', made.keys)
  return { ...made, exported, earlier, published: [made.keys.log.jwk] }
}

const made = await family()
const { exported, earlier, published } = made

test('a log with its children verifies with the published key, by the ordinary verifier', async () => {
  const threads = new Set(exported.lines.map((line) => /"skein:thread":"([^"]+)"/.exec(line)?.[1]))
  expect([...threads]).toEqual(['thread-1', 'thread-2'])
  const verdict = await verifyLog(`${exported.lines.join('\n')}\n`, {
    keys: [exported.publicKey],
    checkpoints: [exported.checkpoint],
  })
  expect(verdict).toMatchObject({ ok: true, sealed: exported.lines.length, faults: [] })
  expect(await verifyAudit(exported, { keys: published })).toMatchObject({ ok: true })
})

test('a log survives being sent as JSON', async () => {
  const sent = JSON.parse(JSON.stringify(exported)) as AuditExport
  expect(await verifyAudit(sent, { keys: [sent.publicKey] })).toMatchObject({ ok: true })
})

test('an empty log is a log', async () => {
  const empty = await exportAudit(made.store, 'thread-9', made.keys)
  expect(await verifyAudit(empty, { keys: published })).toMatchObject({ ok: true, size: 0 })
})

describe('what does not verify', () => {
  const refuses = async (changes: Partial<AuditExport>, keys = published): Promise<void> => {
    const { ok, faults } = await verifyAudit({ ...exported, ...changes }, { keys })
    expect({ ok, hasFaults: faults.length > 0 }).toEqual({ ok: false, hasFaults: true })
  }

  test('another key, another thread’s checkpoint, or none', async () => {
    await refuses({}, [memoryGovernanceKeys().log.jwk])
    const { checkpoint } = await exportAudit(made.store, 'thread-9', made.keys)
    await refuses({ checkpoint })
    await refuses({ lines: [], checkpoint })
    await refuses({ checkpoint: '' })
    // Signed, and of the same log, but nobody vouches for the rest.
    await refuses({ checkpoint: earlier.checkpoint })
    await refuses({ tree: 'thread-9' })
  })

  test('any line changed, removed, doubled or moved', async () => {
    const { lines } = exported
    const index = fc.nat({ max: lines.length - 1 })
    const change = fc.oneof(
      fc
        .tuple(index, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }))
        .map(([at, where, character]) => (list: string[]): void => {
          const line = list[at]!
          const place = where % line.length
          list[at] = line.slice(0, place) + character + line.slice(place + 1)
        }),
      index.map(
        (at) =>
          (list: string[]): void =>
            void list.splice(at, 1),
      ),
      index.map(
        (at) =>
          (list: string[]): void =>
            void list.splice(at, 0, list[at]!),
      ),
      fc.tuple(index, index).map(([from, to]) => (list: string[]): void => {
        const [line] = list.splice(from, 1)
        list.splice(to, 0, line!)
      }),
      index.map(
        (at) =>
          (list: string[]): void =>
            void list.splice(at),
      ),
    )
    await fc.assert(
      fc.asyncProperty(change, async (apply) => {
        const changed = [...lines]
        apply(changed)
        fc.pre(changed.join('\n') !== lines.join('\n'))
        const { ok } = await verifyAudit({ ...exported, lines: changed }, { keys: published })
        expect(ok).toBe(false)
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 3000 : 200 },
    )
  })

  test('a history that was rewritten since a checkpoint that somebody kept', async () => {
    const other = await kit({ tools, seed: 2, sessionId: 'another' })
    const governor = await other.open()
    await governor.deliver('something else')
    await other.commit(governor)
    const rewritten = await exportAudit(other.store, 'thread-1', made.keys)
    expect(await verifyAudit(rewritten, { keys: published })).toMatchObject({ ok: true })
    const { ok } = await verifyAudit(rewritten, { keys: published, trusted: exported.checkpoint })
    expect(ok).toBe(false)
    const trusted = exported.checkpoint
    expect(await verifyAudit(exported, { keys: published, trusted })).toMatchObject({ ok: true })
  })
})
