import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
import { MODELS, type Played } from './hostile-model-worker.ts'

/** Longer than the thread may take by its own limits; after it the event loop counts as frozen. */
const FROZEN_MS = 30_000

let worker: Worker | undefined
afterAll(() => worker?.terminate())

/** Plays a model in the thread that played the one before, or in a new one if that froze. */
function play(name: string): Promise<Played> {
  const current = (worker ??= new Worker(join(import.meta.dirname, 'hostile-model-worker.ts'), {
    execArgv: ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning'],
  }))
  const played = new Promise<Played>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`"${name}" froze the process.`)), FROZEN_MS)
    current.once('error', reject)
    current.once('message', (answer: Played | { readonly failure: string }) => {
      clearTimeout(timer)
      current.off('error', reject)
      if ('failure' in answer) reject(new Error(answer.failure))
      else resolve(answer)
    })
  })
  current.postMessage(name)
  return played.catch((error: unknown) => {
    worker = undefined
    void current.terminate()
    throw error
  })
}

const FINE = { outcome: 'completed', text: 'done' }

/** What a model causes beyond what holds for all. */
const wanted: Readonly<Record<string, object>> = {
  'two calls with one id': { ...FINE, notes: ['a', 'b'], results: 2, callIds: 2 },
  'two payments with one id': { outcome: 'waiting', paid: 0, callIds: 2 },
  'calls with empty ids': { ...FINE, notes: ['a', 'b'], results: 2, callIds: 2 },
  'calls without ids': { ...FINE, notes: ['a', 'b'], results: 2, callIds: 2 },
  'one id in every message': { ...FINE, notes: ['n0', 'n1', 'n2'], results: 3, callIds: 3 },
  'ids that are objects': {},
  'arguments of 8 MB': { notes: [] },
  'arguments 100,000 deep': { notes: [] },
  'arguments that are no JSON': { notes: [] },
  'arguments that are no object': { ...FINE, notes: [], results: 5 },
  '5,000 calls in one message': {},
  'tools that do not exist': { ...FINE, notes: [] },
  'a tool name of 100 kB': { notes: [] },
  '__proto__ in arguments': { notes: expect.arrayContaining(['a', 'b']) },
  'tools of the runtime with nonsense': { ...FINE, threads: 2 },
  'control text': { outcome: 'completed' },
  'lone surrogates': { outcome: 'completed' },
  'nothing at all': {},
  'no end of the message': {},
  'an unknown reason to stop': { outcome: 'completed', text: 'x' },
  'usage that is nonsense': { outcome: 'completed', text: 'x' },
  'another role': { outcome: 'completed' },
  'deltas of 12 MB in all': { outcome: 'failed' },
  '100,000 deltas': { outcome: 'completed' },
  'the same call for ever': { outcome: 'failed' },
  'a failing call for ever': { outcome: 'failed', notes: [] },
  // Depth and steps are bounded, but their product is large: what matters is that it can be ended.
  'a new child for ever': { reason: 'ended by hand', outcome: 'none' },
  'handoffs for ever': { outcome: 'failed', reason: 'max_handoffs' },
  'an error in every stream': { outcome: 'failed' },
}

test('every hostile model has an expectation', () => {
  expect(Object.keys(wanted)).toEqual(Object.keys(MODELS))
})

test.each(Object.keys(MODELS))(
  '%s: the thread ends or waits with a reason, and its neighbour goes on',
  { timeout: FROZEN_MS + 10_000 },
  async (name) => {
    const played = await play(name)
    expect(played).toMatchObject(wanted[name] ?? {})
    if (played.reason !== 'ended by hand')
      expect(['completed', 'failed', 'waiting'], played.reason).toContain(played.outcome)
    if (played.outcome === 'failed') expect(played.reason).not.toBe('')
    expect(played.calm).toBe('calm calm')
    expect(played.isPolluted).toBe(false)
    // A reason like "taken up 6 times" names no cause: what a model says is never a failure of the drain.
    expect(played.reason).not.toBe('drain_failed')
    expect(played.errors).toEqual([])
    expect(played.paid).toBe(0)
    if (played.outcome !== 'none') expect(played.requests, 'paid model calls').toBeLessThan(600)
    expect(played.logBytes).toBeLessThan(16 * 1024 * 1024)
    expect(played.stallMs).toBeLessThan(3000)
  },
)
