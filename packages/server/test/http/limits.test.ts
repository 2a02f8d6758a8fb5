import { afterEach, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { KEYS, startKit, type Kit } from './http-kit.ts'

const HOUR = 3_600_000
const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

/** A server on which each tenant may ask a model once in an hour, at half past the hour. */
async function start(): Promise<Kit> {
  const clock = { now: () => 1_000_000 * HOUR + HOUR / 2 + (Date.now() % 60_000) }
  const spending = [{ per: 'tenant', periodMs: HOUR, maxInferences: 1 }] as const
  const retention = { rules: [{ maxAgeMs: HOUR }] }
  const kit = await startKit({ runtime: { spending, retention, clock } })
  kits.push(kit)
  return kit
}

test('a message over the limit is refused with 429 and retry-after, of every kind of address', async () => {
  const kit = await start()
  const { id } = await kit.json<{ id: string }>('acme', 'POST', '/threads', {
    agent: 'desk',
    message: { text: 'Hello' },
  })
  await kit.runtime.threads.settled(id)
  const text = { text: 'Again' }
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }
  const refused: readonly [path: string, body: unknown][] = [
    [`/threads/${id}/messages`, text],
    ['/threads', { agent: 'desk', message: text }],
    ['/agents/desk/chat', { id: 'c1', messages: [message] }],
    ['/v1/chat/completions', { model: 'desk', messages: [{ role: 'user', content: 'Hello' }] }],
  ]
  for (const [path, body] of refused) {
    const answer = await kit.ask('acme', 'POST', path, body)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect([path, answer.status], error.message).toEqual([path, 429])
    expect(error.message).toMatch(/^The tenant "acme" may use 1 requests of models until \S+Z\./)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(1_000)
  }
  // Another tenant is not affected.
  const rival = await kit.ask('rival', 'POST', '/threads', { agent: 'desk', message: text })
  expect(rival.status).toBe(201)
})

test('the report is for the administrator of the tenant, and shows nothing of other tenants', async () => {
  const kit = await start()
  const body = { agent: 'desk', message: { text: 'Hello' } }
  for (const who of ['acme', 'rival'] as const) {
    const { id } = await kit.json<{ id: string }>(who, 'POST', '/threads', body)
    await kit.runtime.threads.settled(id)
  }
  await kit.ask('acme', 'POST', '/threads', body)
  expect((await kit.ask('ada', 'GET', '/limits')).status).toBe(403)
  const client = createClient({
    url: 'http://localhost',
    apiKey: KEYS.acme.key,
    fetch: (input, init) => kit.http.fetch(new Request(input, init)),
  })
  expect(await client.limits()).toMatchObject({
    spending: [
      {
        per: 'tenant',
        tenant: 'acme',
        spent: { inferences: 1 },
        max: { inferences: 1 },
        refused: 1,
        delayed: 0,
      },
    ],
    retention: [],
  })
  const metrics = await (await kit.ask('acme', 'GET', '/metrics')).text()
  expect(metrics).toContain('skein_limits_total{outcome="refused"} 1\n')
  expect(metrics).not.toContain('acme')
})
