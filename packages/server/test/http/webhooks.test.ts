import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHmac } from 'node:crypto'
import { manualClock, type JsonObject } from '@skein/base'
import { afterEach, expect, test } from 'vitest'
import { startWebhooks, type Webhook, type Webhooks } from '../../src/index.ts'
import type { WebhooksOptions } from '../../src/webhooks/start-webhooks.ts'
import { manualTimers, type ManualTimers } from '@skein/runtime/testing'
import { startKit, type Kit } from './http-kit.ts'

const KEY = Buffer.alloc(32, 3)
const SECRET = `whsec_${KEY.toString('base64')}`
const URL = 'https://hooks.example/in'
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Received {
  readonly id: string
  readonly type: string
  readonly data: Record<string, unknown>
}

interface World {
  readonly kit: Kit
  readonly timers: ManualTimers
  readonly got: Received[]
  /** What the receiver answers next; 200 when empty. */
  readonly answers: (number | Error)[]
  readonly settings: Map<string, JsonObject>
  start(options?: Partial<WebhooksOptions>): Promise<Webhooks>
}

async function setUp(webhook: Partial<Webhook> = {}): Promise<World> {
  const clock = manualClock(1_800_000_000_000)
  const timers = manualTimers(clock)
  const kit = await startKit({ runtime: { clock } })
  const got: Received[] = []
  const answers: (number | Error)[] = []
  const settings = new Map<string, JsonObject>()
  cleanups.push(() => kit.stop())
  const start: World['start'] = async (options) => {
    const webhooks = await startWebhooks(kit.runtime, {
      webhooks: [
        { url: URL, secret: SECRET, events: ['approval.requested', 'session.ended'], ...webhook },
      ],
      settings: {
        setting: async (name) => settings.get(name),
        setSetting: async (name, value) => void settings.set(name, value),
      },
      clock,
      timers,
      post: async ({ headers, body }) => {
        const answer = answers.shift() ?? 200
        if (answer instanceof Error) throw answer
        const expected = createHmac('sha256', KEY)
          .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
          .digest('base64')
        expect(headers['webhook-signature']).toBe(`v1,${expected}`)
        if (answer < 300)
          got.push({ id: headers['webhook-id']!, ...(JSON.parse(body) as Omit<Received, 'id'>) })
        return answer
      },
      ...options,
    })
    cleanups.push(() => webhooks.stop())
    return webhooks
  }
  return { kit, timers, got, answers, settings, start }
}

const run = async ({ kit }: World, text: string, tenant = 'acme'): Promise<string> => {
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant })
  await kit.runtime.threads.run(id, text)
  return id
}

/** Lets everything that was started come to rest. */
async function rest(isThere: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !isThere(); i++) await new Promise((resolve) => setImmediate(resolve))
}

test('an approval that is asked for and a session that ended are told, signed, each once', async () => {
  const world = await setUp()
  await world.start()
  const waiting = await run(world, 'a refund')
  const ended = await run(world, 'Hello')
  await rest(() => world.got.length >= 2)
  expect(world.got.map(({ type, data }) => [type, data['threadId']])).toEqual([
    ['approval.requested', waiting],
    ['session.ended', ended],
  ])
  expect(world.got[0]?.data).toMatchObject({
    tenant: 'acme',
    agent: 'desk',
    interruptId: expect.any(String),
  })
  expect(world.got[1]?.data).toMatchObject({ outcome: 'completed', reason: 'response' })
})

test('only the events and tenants that are asked for are told', async () => {
  const world = await setUp({ events: ['session.ended'], tenants: ['acme'] })
  await world.start()
  await run(world, 'a refund')
  await run(world, 'Hello', 'rival')
  const ended = await run(world, 'Hello')
  await rest(() => world.got.length >= 1)
  expect(world.got.map(({ data }) => data['threadId'])).toEqual([ended])
})

test('a message that is not taken is sent again later, under the same id', async () => {
  const world = await setUp()
  const errors: unknown[] = []
  const webhooks = await world.start({ onError: (error) => errors.push(error) })
  world.answers.push(500, new Error('down'), 302, 200)
  await run(world, 'Hello')
  await rest(() => errors.length === 1)
  for (const [ms, count] of [
    [5_000, 2],
    [30_000, 3],
    [120_000, 3],
  ] as const) {
    expect(world.got).toEqual([])
    await world.timers.advance(ms)
    await rest(() => errors.length === count)
  }
  await rest(() => webhooks.pending === 0)
  expect([world.got.length, webhooks.pending]).toEqual([1, 0])
  await world.timers.advance(10 * 86_400_000)
  expect(world.got).toHaveLength(1)
})

test('a receiver that is gone is not tried again, and one that never answers is given up', async () => {
  const world = await setUp()
  const errors: unknown[] = []
  const webhooks = await world.start({ onError: (error) => errors.push(error) })
  world.answers.push(410)
  await run(world, 'Hello')
  await rest(() => world.answers.length === 0 && webhooks.pending === 0)
  expect([errors, webhooks.pending]).toEqual([[], 0])
  world.answers.push(...Array.from({ length: 20 }, () => 500))
  await run(world, 'Hello')
  await rest(() => errors.length === 1)
  await world.timers.advance(10 * 86_400_000)
  expect([errors.length, webhooks.pending, world.got]).toEqual([9, 0, []])
})

test('what was not taken when the process ended is sent after the next start, and nothing old is', async () => {
  const world = await setUp()
  const before = await run(world, 'Hello')
  await world.timers.advance(120_000)
  const first = await world.start()
  const taken = await run(world, 'Hello')
  await rest(() => world.got.length === 1)
  await world.timers.advance(300_000)
  world.answers.push(500)
  const missed = await run(world, 'Hello')
  await rest(() => world.answers.length === 0)
  await first.stop()
  // In a thread that has told before.
  await world.kit.runtime.threads.run(before, 'Hello')

  world.got.length = 0
  await world.start()
  await rest(() => world.got.length >= 2)
  const ids = world.got.map(({ data }) => data['threadId'])
  expect(ids.toSorted()).toEqual([before, missed].toSorted())
  expect(ids).not.toContain(taken)
})

test('a receiver that is down makes no other hear anything twice, and is owed from the first start on', async () => {
  const world = await setUp()
  const down = 'https://down.example/'
  const webhooks: Webhook[] = [URL, down].map((url) => ({
    url,
    secret: SECRET,
    events: ['session.ended'],
  }))
  const heard: string[] = []
  let isDown = true
  const post: WebhooksOptions['post'] = async ({ url, headers }) => {
    if (isDown && url.href === down) return 500
    heard.push(`${url.host} ${headers['webhook-id']}`)
    return 200
  }
  const first = await world.start({ webhooks, post })
  await run(world, 'Hello')
  await rest(() => heard.length === 1)
  await world.timers.advance(600_000)
  await run(world, 'Hello')
  await rest(() => heard.length === 2)
  await first.stop()
  await world.timers.advance(600_000)
  isDown = false
  await world.start({ webhooks, post })
  const count = (host: string): number => heard.filter((entry) => entry.startsWith(host)).length
  await rest(() => count('down.example') >= 2)
  expect(count('down.example')).toBe(2)
  // The last minute is told again, since nobody can know whether it was heard; nothing before.
  expect(count('hooks.example')).toBeLessThanOrEqual(3)
})

test('a process that dies before it has sent anything owes it all the same', async () => {
  const world = await setUp()
  world.answers.push(500)
  const first = await world.start()
  const owed = await run(world, 'Hello')
  await rest(() => world.answers.length === 0)
  await first.stop()
  await world.timers.advance(86_400_000)
  await world.start()
  await rest(() => world.got.length === 1)
  expect(world.got.map(({ data }) => data['threadId'])).toEqual([owed])
})

test('webhooks go to public addresses by https alone, unless it is said otherwise', async () => {
  const world = await setUp()
  const { runtime } = world.kit
  const to = (url: string, secret = SECRET): Partial<WebhooksOptions> => ({
    webhooks: [{ url, secret, events: ['session.ended'] }],
  })
  await expect(world.start(to('http://hooks.example'))).rejects.toMatchObject({
    code: 'WEBHOOK_INVALID',
  })
  await expect(world.start(to('file:///etc/passwd'))).rejects.toMatchObject({
    code: 'WEBHOOK_INVALID',
  })
  await expect(world.start(to(URL, 'plain'))).rejects.toMatchObject({ code: 'WEBHOOK_INVALID' })

  const hits: string[] = []
  const server: Server = createServer((request, response) => {
    hits.push(String(request.headers['webhook-id']))
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  const errors: unknown[] = []
  const blocked = await startWebhooks(runtime, {
    ...to(`https://127.0.0.1:${port}`),
    webhooks: to(`https://localhost:${port}`).webhooks!,
    onError: (error) => errors.push(error),
  })
  const allowed = await startWebhooks(runtime, {
    webhooks: to(`http://127.0.0.1:${port}/x`).webhooks!,
    allowPrivateAddresses: true,
  })
  cleanups.push(
    () => blocked.stop(),
    () => allowed.stop(),
  )
  await world.timers.advance(2_000_000_000_000)
  await run(world, 'Hello')
  while (hits.length === 0 || errors.length === 0)
    await new Promise((resolve) => setImmediate(resolve))
  expect(hits).toHaveLength(1)
  expect(errors[0]).toMatchObject({ code: 'WEBHOOK_ADDRESS_PRIVATE' })
})
