import { expect, test } from 'vitest'
import { checkApproved } from './approved-cases.ts'

test('what the API, the screen and the terminal showed is what ran, for 12 random schemas', async () => {
  const { ran } = await checkApproved(12, 1)
  expect(ran).toBeGreaterThan(3)
})
