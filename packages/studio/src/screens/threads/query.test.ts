import { expect, test } from 'vitest'
import type { ThreadInfo } from '@skein/runtime'
import { matchesQuery, parseQuery } from './query.ts'

const thread = {
  id: '01a1',
  agent: 'support',
  title: null,
  firstWords: 'Where is order O-7?',
  tags: ['vip'],
  lifecycle: 'idle',
  updatedAt: '2026-11-15T08:00:00.000Z',
  tree: { tokens: 10, costUsd: 0.2, waiting: 0 },
} as unknown as ThreadInfo // the members that a search looks at

test.each([
  ['', true],
  ['order WHERE', true],
  ['vip', true],
  ['parcel', false],
  ['agent:supp order', true],
  ['agent:refunds', false],
  ['status:idle', true],
  ['status:waiting', false],
  ['cost>0.1', true],
  ['cost>0.3', false],
  ['cost<0.3', true],
  ['after:2026-11-15', true],
  ['after:2026-11-16', false],
  ['before:2026-11-16', true],
  ['cost>lots', false],
])('the search "%s" finds the thread: %s', (query, isFound) => {
  expect(matchesQuery(thread, parseQuery(query))).toBe(isFound)
})

test('an unknown cost is neither above nor below a number', () => {
  const unknown = { ...thread, tree: { ...thread.tree, costUsd: null } }
  expect(matchesQuery(unknown, parseQuery('cost>0'))).toBe(false)
  expect(matchesQuery(unknown, parseQuery('cost<9'))).toBe(false)
})
