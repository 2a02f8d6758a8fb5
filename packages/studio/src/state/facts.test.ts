import { expect, test } from 'vitest'
import { FactsFold } from './facts.ts'

test('a queued message can be taken back, unless the parent sent it', () => {
  const fold = new FactsFold()
  const at = '2026-01-01T00:00:00.000Z'
  for (const [id, metadata] of [
    ['own', undefined] as const,
    ['given', { from: 'parent' }] as const,
  ]) {
    const message = { id, type: 'user', timestamp: at, content: [] } as const
    fold.push({ type: 'message_queued', at, queueId: id, role: 'user', message, metadata }, 1)
  }
  expect([...fold.facts.queueIds.keys()]).toEqual(['own'])
})
