import { expect, test } from 'vitest'
import { budgetReason } from './usage.ts'

const used = { tokens: 1000, costUsd: 0.1 + 0.2, durationMs: 5000 }

test.each([
  [{}, undefined],
  [{ maxTokens: 1001, maxCostUsd: 1, maxDurationMs: 5001 }, undefined],
  [{ maxTokens: 1000 }, 'maxTokens: 1000 of 1000 tokens are used.'],
  [{ maxCostUsd: 0.3 }, 'maxCostUsd: 0.3 of 0.3 US dollars are used.'],
  [{ maxDurationMs: 5000 }, 'maxDurationMs: 5000 of 5000 ms are used.'],
  [{ maxTokens: 0 }, 'maxTokens: 1000 of 0 tokens are used.'],
])('%o: %s', (budget, reason) => {
  expect(budgetReason(budget, used)).toBe(reason)
})

test('a limit of nothing allows nothing', () => {
  expect(budgetReason({ maxTokens: 0 }, { tokens: 0, costUsd: 0, durationMs: 0 })).toContain(
    'maxTokens',
  )
})
