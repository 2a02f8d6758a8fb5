import { expect, test } from 'vitest'
import { runLoad } from './http-load.ts'

test('50 clients that leave and come back for 5 s lose nothing and get nothing twice', async () => {
  const report = await runLoad({ clients: 50, seconds: 5 })
  expect(report).toMatchObject({ lost: 0, doubled: 0 })
  expect(report.reconnects).toBeGreaterThanOrEqual(50)
  expect(report.received).toBeGreaterThan(50 * 10)
}, 120_000)
