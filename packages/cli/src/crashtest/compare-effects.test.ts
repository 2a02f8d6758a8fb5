import { expect, test } from 'vitest'
import { compareEffects } from './compare-effects.ts'
import { comparableBody, type Effect } from './effect.ts'

const refund = (body: string, idempotencyKey?: string): Effect => ({
  action: 'POST http://bank.test/refunds',
  body,
  idempotencyKey,
})
const mail: Effect = { action: 'POST http://mail.test', body: '' }

/** `verdict times/expected` of each effect. */
function verdicts(...given: Parameters<typeof compareEffects>): Record<string, string> {
  return Object.fromEntries(
    compareEffects(...given).map(({ effect, verdict, times, expected }) => [
      effect.replace('POST http://bank.test/refunds ', ''),
      `${verdict} ${times}/${expected}`,
    ]),
  )
}

test('an effect is the same, doubled or lost by how often it happened', () => {
  const baseline = [refund('a'), refund('b'), refund('b'), mail]
  expect(verdicts(baseline, [refund('a'), refund('b'), refund('b'), mail, mail])).toEqual({
    a: 'same 1/1',
    b: 'same 2/2',
    'POST http://mail.test': 'doubled 2/1',
  })
  expect(verdicts(baseline, [refund('b'), mail, refund('b')])).toMatchObject({ a: 'lost 0/1' })
  expect(verdicts(baseline, [refund('b'), mail], { isHeld: true })).toMatchObject({
    a: 'held 0/1',
    b: 'held 1/2',
  })
})

test('another body in place of one is a change; in addition to one it is a second effect', () => {
  expect(verdicts([refund('a')], [refund('x')])).toEqual({ a: 'changed 0/1', x: 'changed 1/0' })
  expect(verdicts([refund('a')], [refund('x'), refund('y')])).toMatchObject({
    a: 'changed 0/1',
    x: 'doubled 1/0',
    y: 'doubled 1/0',
  })
  expect(verdicts([refund('a')], [refund('a'), refund('x')])).toEqual({
    a: 'same 1/1',
    x: 'doubled 1/0',
  })
  expect(verdicts([refund('a'), refund('b')], [refund('x')])).toMatchObject({ a: 'lost 0/1' })
  expect(verdicts([refund('a')], [refund('a'), mail])).toMatchObject({
    'POST http://mail.test': 'doubled 1/0',
  })
})

test('requests with one idempotency key count as one, and the repeats are counted', () => {
  const observed = [refund('a', 'k1'), refund('a', 'k1'), refund('a', 'k1')]
  expect(compareEffects([refund('a', 'k0')], observed)).toMatchObject([
    { verdict: 'same', times: 1, repeats: 2 },
  ])
  // Another key is another effect, and so is another body with the same key.
  expect(verdicts([refund('a', 'k0')], [refund('a', 'k1'), refund('a', 'k2')])).toEqual({
    a: 'doubled 2/1',
  })
  expect(verdicts([refund('a', 'k0')], [refund('a', 'k1'), refund('b', 'k1')])).toMatchObject({
    b: 'doubled 1/0',
  })
})

test('bodies of JSON are compared by value, without the ignored fields', () => {
  expect(comparableBody('{"b":1, "a":{"id":7}}', [])).toBe('{"a":{"id":7},"b":1}')
  expect(comparableBody('{"b":1, "a":[{"id":7,"c":2}], "id":3}', ['id'])).toBe(
    '{"a":[{"c":2}],"b":1}',
  )
  expect(comparableBody('b=1&a=2', ['a'])).toBe('b=1&a=2')
})
