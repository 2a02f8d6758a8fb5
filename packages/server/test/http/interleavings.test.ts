import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@skein/base'
import { calls, says, scripted, waits } from '@skein/ai/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryStore,
  type Store,
  sqliteStore,
} from '@skein/runtime'
import { createHttp } from '../../src/index.ts'
import { countOf } from '../../../../conformance/support/counts.ts'

const SEEDS = countOf({ fast: 30, all: 300, deep: 20_000 })
/** With this variable one order is run again. */
const ONLY = process.env['SKEIN_SEED']
const FIRST = Number(ONLY ?? 1)
const COUNT = ONLY === undefined ? SEEDS : 1

/**
 * One request in many orders: a message, a call that needs approval, the approval, and a reader that is opened
 * right after it. Every method of the store waits for a random time before and after it works, and so does
 * the model; the clock moves by a random time between two readings.
 */
test(
  `a stream that is opened after an approval ends with the answer, in ${COUNT} orders`,
  async () => {
    const failed: unknown[] = []
    for (let from = FIRST; from < FIRST + COUNT; from += 20) {
      const seeds = Array.from({ length: Math.min(20, FIRST + COUNT - from) }, (_, i) => from + i)
      await Promise.all(
        seeds.map(async (seed) => {
          const { texts, variant } = await request(seed)
          for (const text of texts)
            if (!text.includes('It is refunded.') || !text.includes('event: stream_end'))
              failed.push({ seed, variant, text })
        }),
      )
    }
    expect(failed).toEqual([])
  },
  4 * 3_600_000,
)

async function request(seed: number): Promise<{ texts: string[]; variant: object }> {
  const chance = chanceOf(seed)
  const isTree = chance(2) === 0
  const isFile = chance(4) === 0
  const readers = 1 + chance(2)
  const isJumpy = chance(2) === 0
  const folder = isFile ? mkdtempSync(join(tmpdir(), 'skein-orders-')) : undefined
  const own = folder ? sqliteStore({ path: join(folder, 'store.db') }) : memoryStore()
  const model = scripted(({ messages }) => [
    waits(chance(3)),
    messages.at(-1)!.type === 'tool_result'
      ? says('It is refunded.')
      : calls('refund', { order: 'O-7' }),
  ])
  const prompt = definePrompt({ name: 'refunds', prompt: 'You refund.', model, tools: [refund] })
  const runtime = await createRuntime({
    agents: [defineAgent({ name: 'refunds', sideA: { prompt } })],
    store: slowed(await own, chance),
    clock: isJumpy ? jumpyClock(chance) : undefined,
    secretKey: Buffer.alloc(32).toString('base64'),
  })
  await runtime.start()
  try {
    const http = createHttp(runtime, { auth: 'none' })
    const send = async (method: string, path: string, body?: object): Promise<Response> => {
      const url = `http://127.0.0.1${path}`
      const headers = { 'content-type': 'application/json', host: '127.0.0.1' }
      const asked = new Request(url, { method, headers, body: body && JSON.stringify(body) })
      const response = await http.fetch(asked, { address: '127.0.0.1' })
      if (!response.ok)
        throw new Error(
          `seed ${seed}: ${method} ${path}: ${response.status} ${await response.text()}`,
        )
      return response
    }
    const { id } = (await (await send('POST', '/threads', { agent: 'refunds' })).json()) as {
      id: string
    }
    const read = async (): Promise<string> =>
      (await send('GET', `/threads/${id}/stream?until=parked&tree=${isTree}`)).text()
    await send('POST', `/threads/${id}/messages`, { text: 'Please refund O-7.' })
    const before = await read()
    const { waiting } = (await (await send('GET', '/approvals')).json()) as {
      waiting: { interruptId: string }[]
    }
    if (!waiting[0]) return { texts: [before], variant: { isTree, isFile, readers, isJumpy } }
    await send('POST', `/approvals/${id}/${waiting[0].interruptId}`, { type: 'approve' })
    const texts = await Promise.all(Array.from({ length: readers }, read))
    return { texts, variant: { isTree, isFile, readers, isJumpy } }
  } finally {
    await runtime.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  }
}

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ order: z.string() }),
  risk: 'write_high_risk',
  rollback: 'impossible',
  execute: (_, { order }) => `Refunded ${order}.`,
})

type Chance = (below: number) => number

/** Returns whole numbers from 0 up to a number, the same ones for the same seed. */
function chanceOf(seed: number): Chance {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

async function pause(chance: Chance): Promise<void> {
  switch (chance(8)) {
    case 0:
      return new Promise((resolve) => setTimeout(resolve, chance(6)))
    case 1:
    case 2:
      return new Promise((resolve) => setImmediate(resolve))
    case 3:
    case 4:
      for (let turns = chance(20); turns > 0; turns--) await undefined
  }
}

function slowed(store: Store, chance: Chance): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        await pause(chance)
        try {
          return await (Reflect.apply(member, target, given) as Promise<unknown>)
        } finally {
          await pause(chance)
        }
      }
    },
  })
}

/** A clock that stands still or jumps by up to a second between two readings, but never goes back. */
function jumpyClock(chance: Chance): Clock {
  let ahead = 0
  return {
    now() {
      if (chance(4) === 0) ahead += chance(1000)
      return Date.now() + ahead
    },
  }
}
