import { expect, test } from 'vitest'
import { isStoreError } from '@skein/runtime'
import { postgresLink } from './link.ts'

test('an address that is not valid is an error of the store, without the address', async () => {
  const connectionString = 'postgres://user:secret@host:port/db'
  const link = postgresLink({ connectionString })
  const failure: unknown = await link
    .start({ gap: () => {}, notice: () => {} } as never)
    .catch((error: unknown) => error)
  expect(isStoreError(failure, 'STORE_UNREACHABLE')).toBe(true)
  expect(failure).toMatchObject({ hint: expect.stringContaining('postgres://') })
  expect(String((failure as Error).stack)).not.toContain('secret')
})
