import { expect, test } from 'vitest'
import { counted } from './inference-operation.ts'

const bytes = new TextEncoder().encode('data: 1\n\n')

test.each(['ends', 'fails', 'is left'])(
  'a stream that %s no longer counts as open',
  async (how) => {
    let released = 0
    let at = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at++ === 0) controller.enqueue(bytes)
        else if (how === 'ends') controller.close()
        else if (how === 'fails') controller.error(new Error('broken'))
        else return new Promise(() => {})
      },
    })
    const reader = counted(new Response(body), () => released++).body!.getReader()
    expect(await reader.read()).toEqual({ done: false, value: bytes })
    expect(released).toBe(0)
    if (how === 'is left') await reader.cancel()
    else if (how === 'fails') await expect(reader.read()).rejects.toThrow('broken')
    else expect((await reader.read()).done).toBe(true)
    expect(released).toBe(1)
  },
)
