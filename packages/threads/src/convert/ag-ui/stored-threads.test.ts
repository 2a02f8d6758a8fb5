import { afterEach, expect, test, vi } from 'vitest'
import { agentTurn, response, text, thread, userTurn } from '../../../test/samples.ts'
import { toAgUiEvents } from './index.ts'

afterEach(() => vi.unstubAllEnvs())

test('a time without a zone is UTC, whatever the zone of the server', () => {
  vi.stubEnv('TZ', 'Asia/Tokyo')
  expect(Date.parse('2026-03-01T09:00:00')).toBe(Date.parse('2026-03-01T00:00:00Z'))
  const sent = (submitted_at: string) => {
    const said = { ...userTurn('Hello'), submitted_at }
    const answered = agentTurn('ada', [
      { ...response('ada', 1, text('Hi')), timestamp: submitted_at },
    ])
    return toAgUiEvents(thread([said, answered]))
  }
  const utc = sent('2026-03-01T09:00:00.123Z')
  for (const same of ['2026-03-01T09:00:00.123', '2026-03-01T18:00:00.123456+09:00']) {
    const { value, lost } = sent(same)
    expect(value).toEqual(utc.value)
    expect(lost).toContainEqual({
      pointer: '/turns/0/submitted_at',
      reason: 'AG-UI keeps milliseconds in UTC',
    })
  }
  expect(utc.value.map(({ timestamp }) => timestamp)).toContain(Date.UTC(2026, 2, 1, 9, 0, 0, 123))
  expect(sent('March').lost.map(({ reason }) => reason)).toContain('not a time that AG-UI can hold')
})
