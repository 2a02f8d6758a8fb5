import { expect, test } from 'vitest'
import { byteText, showProgress } from './progress.ts'

test('bytes, and the time left once the speed is known; often reported, seldom shown', () => {
  const shown: string[] = []
  let now = 0
  const onProgress = showProgress({ status: (text) => shown.push(text) }, 'copying', () => now)
  for (let done = 0; done <= 100; done++) {
    now = done * 100
    onProgress(done * 1e6, 1e8)
  }
  expect(shown[0]).toBe('copying: 0 B of 100 MB')
  expect(shown[2]).toBe('copying: 4.0 MB of 100 MB')
  expect(shown[25]).toBe('copying: 50.0 MB of 100 MB, 5.0 s left')
  expect(shown.at(-1)).toBe('copying: 100 MB of 100 MB, 0.0 s left')
  expect(shown).toHaveLength(51)
})

test('more than was expected is shown as all of it, and an unknown total as bytes alone', () => {
  const shown: string[] = []
  let now = 0
  const onProgress = showProgress({ status: (text) => shown.push(text) }, 'reading', () => now)
  onProgress(5, 4)
  now = 200_000
  onProgress(12_345)
  now = 400_000
  onProgress(1, 100)
  expect(shown).toEqual([
    'reading: 4 B of 4 B',
    'reading: 12.3 kB',
    'reading: 1 B of 100 B, 660 min 0 s left',
  ])
})

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [123_456_789, '123 MB'],
  [8_600_000_000, '8.6 GB'],
  [2e15, '2000 TB'],
])('%d bytes are %s', (bytes, text) => expect(byteText(bytes)).toBe(text))
