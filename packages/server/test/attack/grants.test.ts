import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { type Policy, rules, standardPolicy } from '@skein/governance'
import {
  createRuntime,
  type EmbeddedRuntime,
  memoryStore,
  type RuntimeOptions,
  type Store,
  verifyAudit,
  defineAgent,
  definePrompt,
  defineTool,
} from '@skein/runtime'
import { createHttp } from '../../src/index.ts'

/** What a standing grant promises: one tool, one thread, until a time, and never more. */

let runtime: EmbeddedRuntime | undefined
let now = Date.parse('2026-05-05T12:00:00Z')
const clock = { now: () => now }
const HOUR = 3_600_000

afterEach(async () => {
  await runtime?.stop({ graceMs: 0 })
  runtime = undefined
})

const pays = (...amounts: number[]): ScriptStep[] =>
  amounts.flatMap((amount, index) => [
    calls('pay', { amount }, { id: `pay-${index}` }),
    says(`Paid ${amount}.`),
  ])

/** For threads that each ask once, and wait. */
const asks = (...amounts: number[]): ScriptStep[] =>
  amounts.map((amount) => calls('pay', { amount }, { id: `pay-${amount}` }))

/** A runtime whose model pays, with amounts above 100 of high risk, and what was done. */
async function boot(script: readonly ScriptStep[], options: Partial<RuntimeOptions> = {}) {
  const done: string[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    risk: 'write_low_risk',
    raise: ({ amount }) => (amount > 100 ? 'write_high_risk' : 'write_low_risk'),
    args: z.object({ amount: z.number() }),
    rollback: 'impossible',
    execute: (_, { amount }) => {
      done.push(`pay ${amount}`)
      return `paid ${amount}`
    },
  })
  const erase = defineTool({
    name: 'erase',
    description: 'Erases.',
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute: () => {
      done.push('erase')
      return 'erased'
    },
  })
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    risk: 'read_only',
    execute: () => 'seen',
  })
  const prompt = definePrompt({
    name: 'payer',
    prompt: '',
    model: scripted(script),
    tools: [pay, erase, look],
  })
  // Every write is reviewed, so that grants of both risks have something to do.
  const review = rules([{ when: ({ risk }) => risk !== 'read_only', effect: 'review' }])
  runtime = await createRuntime({
    agents: [defineAgent({ name: 'payer', sideA: { prompt } })],
    policy: review,
    clock,
    ...options,
  })
  await runtime.start()
  return { ...runtime, done, runtime }
}

type Booted = Awaited<ReturnType<typeof boot>>

async function start({ threads }: Booted, tenant = 'acme'): Promise<string> {
  return (await threads.create({ agent: 'payer', tenant })).id
}

/** Sends a message and says whether a person was asked, and why a grant was not enough. */
async function asked({ threads }: Booted, id: string): Promise<unknown> {
  const { outcome, waiting } = await threads.run(id, 'go on')
  const events = await threads.events(id)
  const gate = events.findLast(({ event }) => event.type === 'gate_decided')?.event
  if (outcome !== 'waiting') return 'ran'
  expect(waiting).toHaveLength(1)
  return gate?.type === 'gate_decided' ? gate.reasonCodes?.[0] : undefined
}

/** A store that outlives the runtimes that use it. */
function sharedStore(): Store {
  const store = memoryStore()
  store.close = async () => undefined
  return store
}

test('a grant answers for the person until its end; the audit log says who, when and for which calls', async () => {
  const it = await boot(pays(200, 300, 400))
  const id = await start(it)
  const until = new Date(now + HOUR).toISOString()
  const made = await it.threads.grants.make(id, {
    tool: 'pay',
    forMs: HOUR,
    by: 'ann',
    risk: 'write_high_risk',
    reason: 'a busy day',
  })
  expect(made).toMatchObject({ tool: 'pay', by: 'ann', expiresAt: until, status: 'active' })
  expect(await asked(it, id)).toBe('ran')
  expect(await asked(it, id)).toBe('ran')
  now += HOUR
  expect(await asked(it, id)).toBe('APPROVAL_REQUIRED')
  expect(it.done).toEqual(['pay 200', 'pay 300'])
  expect(await it.threads.grants.list(id)).toMatchObject([{ status: 'expired' }])

  const audit = await it.threads.audit(id)
  expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
  const lines = audit.lines.map((line) => JSON.parse(line))
  expect(lines[0]).toMatchObject({
    identity: {
      user_id: 'ann',
      'skein:grant': { grant: made.grantId, tool: 'pay', expires_at: until, done: 'made' },
    },
    timestamp: '2026-05-05T12:00:00.000Z',
  })
  const uses = lines.filter(({ metadata }) => metadata['uaicp:data'].answer === 'approved')
  expect(uses.map(({ metadata }) => metadata['uaicp:data'])).toMatchObject([
    { approvers: [{ type: 'human', id: 'ann' }], tokens: [made.grantId] },
    { approvers: [{ type: 'human', id: 'ann' }], tokens: [made.grantId] },
  ])
})

test('an approval can include the grant, in one commit; what was asked before stays valid', async () => {
  const it = await boot([
    calls('pay', { amount: 200 }, { id: 'a' }),
    says('Once.'),
    calls('pay', { amount: 300 }, { id: 'b' }),
    says('Twice.'),
    calls('erase', {}, { id: 'c' }),
    says('Gone.'),
  ])
  const id = await start(it)
  const { waiting } = await it.threads.run(id, 'pay')
  const { threadId, interruptId, request } = waiting[0]!
  const item = { threadId, interruptId, by: 'ann' }
  const wrong = { ...item, with: { amount: 1 }, grantForMs: HOUR }
  await expect(it.inbox.approve(wrong)).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  const late = { ...item, grantForMs: 25 * HOUR }
  await expect(it.inbox.approve(late)).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  expect(await it.threads.grants.list(id)).toEqual([])
  await it.inbox.approve({ ...item, digest: request!.digest, grantForMs: HOUR })
  expect(await it.threads.settled(id)).toMatchObject({ outcome: 'completed', text: 'Once.' })
  expect(await asked(it, id)).toBe('ran')
  expect(await asked(it, id)).toBe('APPROVAL_REQUIRED') // another tool
  expect(it.done).toEqual(['pay 200', 'pay 300'])
  await it.inbox.approve({ ...(await it.inbox.list())[0]!, by: 'ann' })
  expect(await it.threads.settled(id)).toMatchObject({ text: 'Gone.' })
})

describe('a grant is of no use', () => {
  const grant = { tool: 'pay', by: 'ann', risk: 'write_high_risk' } as const

  test('in another thread, in another tenant, or in a fork or an import of the thread', async () => {
    const it = await boot([says('Hello.'), ...asks(1, 2, 3, 4)])
    const id = await start(it)
    await it.threads.run(id, 'hello')
    await it.threads.grants.make(id, { ...grant, forMs: HOUR })
    expect(await asked(it, await start(it))).toBe('APPROVAL_REQUIRED')
    expect(await asked(it, await start(it, 'rival'))).toBe('APPROVAL_REQUIRED')
    const fork = await it.threads.fork(id)
    expect(await it.threads.grants.list(fork.id)).toEqual([])
    expect(await asked(it, fork.id)).toBe('APPROVAL_REQUIRED')
    const lines = await it.threads.export(id)
    expect(lines).toContain('"grant_made"')
    expect(lines).not.toMatch(/"grant":"[^"]/)
    const copy = await it.threads.import(lines, { tenant: 'acme' })
    expect(await it.threads.grants.list(copy.id)).toEqual([])
    expect(it.done).toEqual([])
  })

  test('for a higher risk than it was made for', async () => {
    const it = await boot(pays(50, 500))
    const id = await start(it)
    const { risk } = await it.threads.grants.make(id, {
      tool: 'pay',
      by: 'ann',
      forMs: HOUR,
    })
    expect(risk).toBe('write_low_risk') // the tool declares it, and its arguments may raise it
    expect(await asked(it, id)).toBe('ran')
    expect(await asked(it, id)).toBe('APPROVAL_REQUIRED')
    expect(it.done).toEqual(['pay 50'])
  })

  test('after it was revoked, also by another process of the same store', async () => {
    const store = sharedStore()
    const it = await boot(pays(200, 300, 400), { store })
    const id = await start(it)
    const { grantId } = await it.threads.grants.make(id, { ...grant, forMs: HOUR })
    expect(await asked(it, id)).toBe('ran')
    await it.threads.grants.revoke(id, grantId, { by: 'bea' })
    await it.threads.grants.revoke(id, grantId, { by: 'cho' }) // the first one counts
    expect(await it.threads.grants.list(id)).toMatchObject([
      { status: 'revoked', revoked: { by: 'bea' } },
    ])
    expect(await asked(it, id)).toBe('APPROVAL_REQUIRED')
    await expect(it.threads.grants.revoke(id, 'none', { by: 'bea' })).rejects.toMatchObject({
      code: 'GRANT_NOT_FOUND',
    })
    const audit = await it.threads.audit(id)
    expect(await verifyAudit(audit, { keys: [audit.publicKey] })).toMatchObject({ ok: true })
    expect(
      audit.lines.flatMap((line) => {
        const { identity, metadata } = JSON.parse(line)
        const { done } = identity['skein:grant'] ?? {}
        return metadata['uaicp:event'] === 'delivered' && done
          ? [`${done} by ${identity['user_id']}`]
          : []
      }),
    ).toEqual(['made by ann', 'revoked by bea'])
  })

  test('if it is forged, lengthened, moved to another thread or replayed after its revocation', async () => {
    const store = sharedStore()
    const it = await boot(asks(1, 2, 3, 4, 5), { store })
    const id = await start(it)
    const { grantId } = await it.threads.grants.make(id, { ...grant, forMs: HOUR })
    const events = await it.threads.events(id)
    const made = events.find(({ event }) => event.type === 'grant_made')!.event
    if (made.type !== 'grant_made') throw new Error('There is no grant.')
    await it.threads.grants.revoke(id, grantId, { by: 'ann' })
    const plant = async (threadId: string, changes: object): Promise<void> => {
      const planted = { ...made, grantId: `planted ${threadId}`, ...changes }
      await store.commit({ point: 'plant', threads: [{ id: threadId, append: [planted] }] })
    }
    // Who can write to the store can write an event, but cannot sign: the signed text alone counts.
    const [head, body, signature] = made.grant.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const changed = Buffer.from(JSON.stringify({ ...claims, exp: claims.exp + 86_400 }))
    const forged = `${head}.${changed.toString('base64url')}.${signature}`
    const elsewhere = [
      [{ grant: forged }, 'APPROVAL_INVALID'],
      [{ grant: '' }, 'APPROVAL_INVALID'],
      [{}, 'APPROVAL_SCOPE'],
    ] as const
    for (const [changes, code] of elsewhere) {
      const other = await start(it)
      await plant(other, changes)
      expect(await asked(it, other)).toBe(code)
    }
    // The same text again, under another id, after it was revoked.
    await plant(id, {})
    expect(await asked(it, id)).toBe('APPROVAL_REQUIRED')
    expect(it.done).toEqual([])
  })

  test('where two people have to approve, or the person is excluded, or a policy denies', async () => {
    const twice = rules([{ when: () => true, effect: 'review', quorum: 2 }], { id: 'twice' })
    const eyes = rules([{ when: () => true, effect: 'review', fourEyes: true }], { id: 'eyes' })
    const never = rules([{ when: () => true, effect: 'deny' }], { id: 'never' })
    const shadow: Policy = { ...never, id: 'shadow', mode: 'shadow' }
    const cases: (readonly [Policy | readonly Policy[], unknown])[] = [
      [twice, 'APPROVAL_REQUIRED'],
      [[standardPolicy, twice], 'APPROVAL_REQUIRED'],
      [eyes, 'APPROVAL_SELF'],
      [[shadow, eyes], 'APPROVAL_SELF'],
      [[standardPolicy, never], 'ran'], // denied: the model is told, and nobody is asked
    ]
    for (const [policy, expected] of cases) {
      const it = await boot(pays(200), { policy })
      const { id } = await it.threads.create({ agent: 'payer', owner: 'ann' })
      await it.threads.grants.make(id, { ...grant, forMs: HOUR })
      expect(await asked(it, id)).toBe(expected)
      expect(it.done).toEqual([])
      await it.runtime.stop({ graceMs: 0 })
    }
  })
})

test('who may make one, of what, for how long, and how many', async () => {
  const it = await boot([])
  const id = await start(it)
  const make = (changes: object) =>
    it.threads.grants.make(id, { tool: 'pay', by: 'ann', forMs: HOUR, ...changes })
  for (const changes of [
    { by: 'payer' }, // the agent itself
    { tool: 'look' },
    { tool: 'unknown' },
    { forMs: 0 },
    { forMs: 25 * HOUR },
    { forMs: Number.NaN },
  ])
    await expect(make(changes), JSON.stringify(changes)).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
    })
  for (let count = 0; count < 50; count++) await make({})
  await expect(make({})).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  now += HOUR
  await make({})
  await it.threads.terminate(id)
  await expect(make({})).rejects.toMatchObject({ code: 'THREAD_TERMINATED' })
})

test('over HTTP: a scope is needed, the name is that of the key, and the signed text stays inside', async () => {
  const it = await boot(pays(200))
  const id = await start(it)
  const keys = [
    { key: 'key-of-a-reader-01', tenant: 'acme', scopes: ['threads:read', 'threads:write'] },
    { key: 'key-of-approver-01', tenant: 'acme', name: 'bea', scopes: ['admin'] },
    { key: 'key-of-a-rival-001', tenant: 'rival', scopes: ['admin'] },
  ] as const
  const http = createHttp(it.runtime, { auth: { keys }, clock })
  const ask = async (key: number, method: string, path: string, body?: object) => {
    const headers = {
      authorization: `Bearer ${keys[key]!.key}`,
      'content-type': 'application/json',
      host: '127.0.0.1',
    }
    const response = await http.fetch(
      new Request(`http://127.0.0.1/threads/${id}/${path}`, {
        method,
        headers,
        body: body && JSON.stringify(body),
      }),
    )
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json;')
    return { status: response.status, text, json: isJson ? JSON.parse(text) : undefined }
  }
  const body = { tool: 'pay', forMs: HOUR, risk: 'write_high_risk' }
  expect(await ask(0, 'POST', 'grants', body)).toMatchObject({ status: 403 })
  expect(await ask(2, 'POST', 'grants', body)).toMatchObject({ status: 404 })
  expect(await ask(1, 'POST', 'grants', { ...body, by: 'ann' })).toMatchObject({ status: 400 })
  const made = await ask(1, 'POST', 'grants', body)
  expect(made).toMatchObject({ status: 201, json: { by: 'bea', status: 'active' } })
  const listed = await ask(0, 'GET', 'grants')
  expect(listed.json).toEqual({ grants: [made.json] })
  const { grantId } = made.json
  expect(await ask(0, 'DELETE', `grants/${grantId}`)).toMatchObject({ status: 403 })
  expect(await ask(2, 'DELETE', `grants/${grantId}`)).toMatchObject({ status: 404 })
  const log = await ask(1, 'GET', 'events')
  expect(log.text).toContain('grant_made')
  for (const { text } of [made, listed, log, await ask(1, 'GET', 'export')])
    expect(text).not.toMatch(/eyJ[\w-]+\.eyJ/) // nothing signed leaves
  expect(await ask(1, 'DELETE', `grants/${grantId}`)).toMatchObject({ status: 204 })
  expect(await ask(1, 'DELETE', 'grants/none')).toMatchObject({ status: 404 })
})

describe('the list over all threads', () => {
  test('has the grants that hold, of the own tenant and the own threads only, and nobody else can revoke', async () => {
    const { threads } = await boot(pays(1))
    const make = async (tenant: string, owner: string, forMs: number, title: string) => {
      const { id } = await threads.create({ agent: 'payer', tenant, owner, title })
      const { grantId } = await threads.grants.make(id, { tool: 'pay', forMs, by: 'ada' })
      return { id, grantId }
    }
    const late = await make('acme', 'ann', 3 * HOUR, 'Late')
    const soon = await make('acme', 'bob', HOUR, 'Soon')
    const gone = await make('acme', 'ann', HOUR, 'Revoked')
    await make('other', 'ann', HOUR, 'Elsewhere')
    await threads.grants.revoke(gone.id, gone.grantId, { by: 'bob' })
    const titles = async (query?: Parameters<typeof threads.grants.all>[0]) =>
      (await threads.grants.all(query)).map(({ title }) => title)
    expect(await titles({ tenant: 'acme' })).toEqual(['Soon', 'Late'])
    expect(await titles({ tenant: 'acme', owner: 'ann' })).toEqual(['Late'])
    expect(await titles({ tenant: 'acme', limit: 1 })).toEqual(['Soon'])
    expect((await titles()).toSorted()).toEqual(['Elsewhere', 'Late', 'Soon'])
    const [first] = await threads.grants.all({ tenant: 'acme' })
    expect(first).toMatchObject({ threadId: soon.id, tool: 'pay', by: 'ada', status: 'active' })

    // Over HTTP, keys see what their tenant, their user and their scopes allow.
    const keys = [
      { key: 'a'.repeat(32), tenant: 'acme', user: 'ann', scopes: ['threads:read'] },
      {
        key: 'b'.repeat(32),
        tenant: 'acme',
        scopes: ['threads:read', 'threads:all', 'approvals:write'],
      },
      { key: 'c'.repeat(32), tenant: 'third', scopes: ['admin'] },
      { key: 'd'.repeat(32), tenant: 'acme', scopes: ['metrics:read'] },
    ] as const
    const http = createHttp(runtime!, { auth: { keys }, clock })
    const ask = async (key: number, method: string, path: string) => {
      const headers = { authorization: `Bearer ${keys[key]!.key}`, host: '127.0.0.1' }
      const response = await http.fetch(new Request(`http://localhost${path}`, { method, headers }))
      const body = response.status === 204 ? undefined : ((await response.json()) as object)
      return { status: response.status, ...body } as {
        status: number
        grants?: readonly { readonly title: string }[]
      }
    }
    const seen = async (key: number) =>
      (await ask(key, 'GET', '/grants')).grants?.map((one) => one.title)
    expect(await seen(0)).toEqual(['Late'])
    expect(await seen(1)).toEqual(['Soon', 'Late'])
    expect(await seen(2)).toEqual([])
    expect((await ask(3, 'GET', '/grants')).status).toBe(403)
    const revoke = (key: number) => ask(key, 'DELETE', `/threads/${late.id}/grants/${late.grantId}`)
    expect((await revoke(0)).status).toBe(403)
    expect((await revoke(2)).status).toBe(404)
    expect(await seen(1)).toEqual(['Soon', 'Late'])
    expect((await revoke(1)).status).toBe(204)
    expect(await seen(1)).toEqual(['Soon'])
    now += HOUR
    expect(await seen(1)).toEqual([])
  })
})
