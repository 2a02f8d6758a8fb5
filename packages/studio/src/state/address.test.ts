import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAddress, VIEWS, writeAddress, type Address } from './address.ts'

const id = fc
  .string({ minLength: 1, unit: 'grapheme' })
  .filter((text) => text !== '.' && text !== '..')
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined })

/** Addresses as the page makes them: a member that is not set is absent, and `chat` is the default view. */
const address: fc.Arbitrary<Address> = fc
  .oneof(
    fc.record({
      screen: fc.constant('threads' as const),
      query: maybe(id),
      isNew: maybe(fc.constant(true)),
    }),
    fc.record({
      screen: fc.constant('thread' as const),
      threadId: id,
      query: maybe(id),
      view: maybe(fc.constantFrom(...VIEWS.filter((view) => view !== 'chat'))),
      at: maybe(fc.integer({ min: 1 })),
      select: maybe(id),
      tab: maybe(id),
      with: maybe(id),
    }),
    fc.record({ screen: fc.constant('inbox' as const), item: maybe(id) }),
    fc.record({ screen: fc.constant('agents' as const) }),
    fc.record({ screen: fc.constant('agent' as const), agent: id }),
    fc.record({ screen: fc.constant('api' as const), operation: maybe(id) }),
  )
  .map((one) => JSON.parse(JSON.stringify(one)) as Address)

test('an address that is written is read again as it was', () => {
  fc.assert(
    fc.property(address, (one) => {
      const [path = '', search = ''] = writeAddress(one).split(/\?(.*)/s)
      expect(readAddress(path, search)).toEqual(one)
    }),
  )
})

test('an unknown address is recognised, and a number that is none is ignored', () => {
  expect(readAddress('/threads/a/b', '')).toMatchObject({ screen: 'unknown' })
  expect(readAddress('/elsewhere', '')).toMatchObject({ screen: 'unknown' })
  expect(readAddress('/threads/a', 'at=x&view=none')).toEqual({ screen: 'thread', threadId: 'a' })
})
