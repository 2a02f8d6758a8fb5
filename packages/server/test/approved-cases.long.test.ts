import { expect, test } from 'vitest'
import { checkApproved } from './approved-cases.ts'

// Batches, because a request of a model names every tool of its agent.
test(
  'what the API, the screen and the terminal showed is what ran, for 500 random schemas',
  { timeout: 300_000 },
  async () => {
    let count = 0
    for (let seed = 2; seed < 12; seed++) count += (await checkApproved(50, seed)).ran
    expect(count).toBeGreaterThan(200)
  },
)
