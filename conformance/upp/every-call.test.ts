import { manualClock } from '@skein/base'
import type { AnyRequest, AnyResponse, LLMRequest, Middleware, MiddlewareContext } from '@skein/ai'
import { describe, expect, test } from 'vitest'
import { dot, forms } from './support/every-call.ts'

const hooks = ['onStart', 'onRequest', 'onResponse', 'onEnd', 'onError'] as const
type Hook = (typeof hooks)[number]

function probe(name: string, log: unknown[], at?: Hook): Middleware {
  const write = (hook: Hook, context: MiddlewareContext): void => {
    const { modality, modelId, provider, streaming, startTime, endTime } = context
    log.push([`${name}.${hook}`, modality, modelId, provider, streaming, startTime, endTime])
    if (hook === at) throw new Error(`${name} fails`)
  }
  return {
    name,
    onStart: async (context) => write('onStart', context),
    onRequest: (context) => write('onRequest', context),
    onStreamEnd: (context) => void log.push([`${name}.onStreamEnd`, Object.keys(context)]),
    onResponse: async (context) => write('onResponse', context),
    onEnd: (context) => write('onEnd', context),
    onError: async (_error, context) => write('onError', context),
  }
}

describe.each(forms)('%s', (_, modality, streaming, call) => {
  const entry = (name: string, startTime: number, endTime?: number): unknown[] => [
    name,
    modality,
    'Model-1',
    'every',
    streaming,
    startTime,
    endTime,
  ]

  test('UPP-097 UPP-098 UPP-101 the hooks, their order and their context', async () => {
    const clock = manualClock(1000)
    const log: unknown[] = []
    const middleware = [probe('a', log), probe('b', log)]
    await call({ middleware, clock, vendor: () => void clock.advance(7) })
    const ends = ['a.onStreamEnd', 'b.onStreamEnd'].map((name) => [name, ['state']])
    expect(log).toEqual([
      ...['a.onStart', 'b.onStart', 'a.onRequest', 'b.onRequest'].map((name) => entry(name, 1000)),
      ...(streaming ? ends : []),
      ...['b.onResponse', 'a.onResponse', 'b.onEnd', 'a.onEnd'].map((name) =>
        entry(name, 1000, 1007),
      ),
    ])
  })

  test('UPP-098 UPP-105 the request that onRequest put in place is sent', async () => {
    const sent: AnyRequest[] = []
    const change: Middleware = {
      name: 'change',
      onRequest: (context) => {
        context.request = { ...context.request, params: { changed: true } }
      },
    }
    await call({ middleware: [change], vendor: (request) => void sent.push(request) })
    expect(sent.map(({ params }) => params)).toEqual([{ changed: true }])
  })

  test('UPP-098 UPP-105 the response that a hook put in place is returned', async () => {
    const change = (name: 'onResponse' | 'onEnd'): Middleware => ({
      name,
      [name]: (context: MiddlewareContext) => {
        context.response = { ...context.response, [name]: true } as unknown as AnyResponse
      },
    })
    const middleware = [change('onResponse'), change('onEnd')]
    expect(await call({ middleware })).toMatchObject({ onResponse: true, onEnd: true })
  })

  test.each([...hooks.slice(0, 4), 'the vendor'] as const)(
    'UPP-103 a failure in %s goes to every middleware, with its time, and is thrown',
    async (at) => {
      const clock = manualClock(1000)
      const log: unknown[][] = []
      const hook = at === 'the vendor' ? undefined : at
      const middleware = [
        probe('a', log, 'onError'),
        probe('b', log, hook),
        { name: 'without' },
        probe('c', log),
      ]
      const vendor = (): void => {
        clock.advance(7)
        if (!hook) throw new Error('vendor fails')
      }
      await expect(call({ middleware, clock, vendor })).rejects.toMatchObject({
        name: 'UPPError',
        provider: 'every',
        modality,
        message: expect.stringContaining(hook ? 'b fails' : 'vendor fails') as unknown,
      })
      const isAsked = !hook || hook === 'onResponse' || hook === 'onEnd'
      const told = log.filter(([name]) => String(name).endsWith('onError'))
      expect(told).toEqual(
        ['a', 'b', 'c'].map((name) => entry(`${name}.onError`, 1000, isAsked ? 1007 : 1000)),
      )
    },
  )

  test('UPP-103 a request that onRequest made invalid goes to every middleware', async () => {
    const log: unknown[] = []
    const spoil: Middleware = {
      name: 'spoil',
      onRequest: (context) => {
        const tools = [0, 1].map(() => ({
          name: 't',
          description: '',
          parameters: {},
          run: () => 1,
        }))
        if (modality === 'llm') context.request = { ...(context.request as LLMRequest), tools }
        else if (modality === 'embedding') Object.assign(context.request, { inputs: [dot] })
        else throw new Error('spoiled')
      },
      onError: (error) => void log.push(['spoil', (error as { code?: string }).code]),
    }
    const last: Middleware = {
      name: 'last',
      onError: (error) => void log.push(['last', (error as { code?: string }).code]),
    }
    const vendor = (): void => void log.push('sent')
    await expect(call({ middleware: [spoil, last], vendor })).rejects.toMatchObject({ modality })
    expect(log).toEqual([
      ['spoil', 'INVALID_REQUEST'],
      ['last', 'INVALID_REQUEST'],
    ])
  })

  test('UPP-094 UPP-103 UPP-139 an abort ends the call, whatever the vendor does, and is reported', async () => {
    const log: unknown[] = []
    const controller = new AbortController()
    const told = (name: string, hook: 'onAbort' | 'onError'): Middleware => ({
      name,
      [hook]: ({ code }: { code?: string }) => void log.push([name, hook, code]),
    })
    const middleware = [told('a', 'onAbort'), told('b', 'onError')]
    const vendor = (): Promise<void> => {
      controller.abort('enough')
      return new Promise(() => {}) // a vendor that ignores the signal
    }
    await expect(call({ middleware, vendor, signal: controller.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
      modality,
      cause: 'enough',
    })
    expect(log).toEqual([
      ['a', 'onAbort', 'CANCELLED'],
      ['b', 'onError', 'CANCELLED'],
    ])
  })

  test('UPP-139 a signal that was aborted before the call ends it before the vendor is asked', async () => {
    const asked: unknown[] = []
    const setup = { middleware: [], vendor: () => void asked.push(1), signal: AbortSignal.abort() }
    await expect(call(setup)).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(asked).toEqual([])
  })

  test('UPP-098 UPP-099 the state is one map within a call and another in the next', async () => {
    const states: unknown[] = []
    const see = ({ state }: { readonly state: unknown }): void => void states.push(state)
    const middleware = [
      { name: 'see', onStart: see, onRequest: see, onStreamEnd: see, onResponse: see, onEnd: see },
    ]
    await call({ middleware })
    const count = states.length
    await call({ middleware })
    expect(count).toBe(streaming ? 5 : 4)
    expect(new Set(states.slice(0, count)).size).toBe(1)
    expect(new Set(states).size).toBe(2)
  })
})
