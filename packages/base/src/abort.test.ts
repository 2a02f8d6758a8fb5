import { describe, expect, test } from 'vitest'
import { linkAbort, untilAborted } from './abort.ts'

describe('linkAbort', () => {
  test('any of the signals aborts the controller, with its reason', () => {
    const sources = [new AbortController(), new AbortController()]
    const controller = new AbortController()
    linkAbort([sources[0]!.signal, undefined, sources[1]!.signal], controller)
    sources[1]!.abort('enough')
    expect(controller.signal.reason).toBe('enough')
  })

  test('a signal that is aborted already aborts at once; an unlinked one does nothing', () => {
    const early = new AbortController()
    linkAbort([AbortSignal.abort('before')], early)
    expect(early.signal.reason).toBe('before')
    const source = new AbortController()
    const unlinked = new AbortController()
    linkAbort([source.signal], unlinked)()
    source.abort()
    expect(unlinked.signal.aborted).toBe(false)
  })
})

describe('untilAborted', () => {
  test('gives the outcome of the work while nobody aborts', async () => {
    const { signal } = new AbortController()
    await expect(untilAborted(signal, Promise.resolve(1))).resolves.toBe(1)
    await expect(untilAborted(signal, Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  test('rejects with the reason, or with the error made of it, before the work is done', async () => {
    const controller = new AbortController()
    const never = new Promise<never>(() => {})
    const plain = untilAborted(controller.signal, never)
    const made = untilAborted(controller.signal, never, ({ reason }) => new Error(`${reason}!`))
    controller.abort('stop')
    await expect(plain).rejects.toBe('stop')
    await expect(made).rejects.toThrow('stop!')
    await expect(untilAborted(AbortSignal.abort('gone'), never)).rejects.toBe('gone')
  })

  test('a late failure of abandoned work is handled', async () => {
    const late = Promise.reject(new Error('late'))
    await expect(untilAborted(AbortSignal.abort('gone'), late)).rejects.toBe('gone')
  })
})
